import CredmgrMessages
import CredmgrPlatform
import CredmgrText

extension Doctor {
  mutating func checkPrograms() {
    let shipped = context.home.systemProviders.last ?? ""
    let hasDescriptors = ((try? File.names(in: shipped)) ?? []).contains { $0.hasSuffix(".yaml") }
    if !hasDescriptors {
      problem(.programs, "no built-in descriptors found in \(quoted(shipped))", hints: context.reinstalling)
    }
    if hasDescriptors { ok(.programs, "all are installed with \"\(context.program)\"") }
  }
}
