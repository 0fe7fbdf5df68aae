import CredentialManager
import Platform
import Text

extension Doctor {
  mutating func checkPrograms() {
    let isComplete = Home.sibling("credmgr-online", of: context.executable) != nil
    if !isComplete { problem(.programs, CredentialError.networkNeeded.message.with(hints: [context.reinstalling])) }
    let shipped = context.home.systemProviders.last ?? ""
    let hasDescriptors = ((try? File.names(in: shipped)) ?? []).contains { $0.hasSuffix(".yaml") }
    if !hasDescriptors {
      problem(.programs, "there are no shipped descriptors in \(quoted(shipped))", hints: context.reinstalling)
    }
    if isComplete, hasDescriptors { ok(.programs, "all of them are beside \"\(context.program)\"") }
  }
}
