import CredmgrCredentialManager
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

extension Doctor {
  mutating func checkPrograms() {
    let isComplete = Home.sibling("credmgr-online", of: context.executable) != nil
    if !isComplete { problem(.programs, CredentialError.networkNeeded.message.with(hints: [context.reinstalling])) }
    let shipped = context.home.systemProviders.last ?? ""
    let hasDescriptors = ((try? File.names(in: shipped)) ?? []).contains { $0.hasSuffix(".yaml") }
    if !hasDescriptors {
      problem(.programs, "no built-in descriptors found in \(quoted(shipped))", hints: context.reinstalling)
    }
    if isComplete, hasDescriptors { ok(.programs, "all are installed with \"\(context.program)\"") }
  }
}
