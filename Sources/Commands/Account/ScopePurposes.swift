import CredmgrCredentialManager
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrMessages
import CredmgrText

extension Context {
  /// Returns the scopes of `--scope` and of the purposes in `--for`.
  func scope(_ invocation: Invocation, of descriptor: Descriptor?) throws(CommandError) -> [String] {
    var scope = invocation.all("--scope")
    // Without a descriptor, the login reports the unknown provider.
    guard let text = invocation.value("--for"), let descriptor else { return scope }
    let names = descriptor.scopeSets.map(\.name)
    if names.isEmpty {
      throw .usage(
        "the descriptor of \(titled(descriptor.identifier)) has no scopes for \"--for\"",
        hint: "use \"--scope\" with the provider's names")
    }
    for name in text.split(separator: ",", omittingEmptySubsequences: false).map(String.init) {
      guard let set = descriptor.scopeSets.first(where: { $0.name == name }) else {
        let near = nearMiss(name, among: names)
        throw .usage(
          "unknown purpose \(quoted(name))\(didYouMean(near))",
          hints: (name == text ? .correcting(name, to: near) : []) + ["use some of \(names.joined(separator: ","))"])
      }
      scope += set.scopes.filter { !scope.contains($0) }
    }
    return scope
  }

  /// Returns the sentence and the remedy for a refusal that concerns scopes.
  func missingScope(
    _ required: RequiredScope, of account: Account
  ) -> (words: String, remedy: Remedy) {
    let provider = account.provider
    let descriptor = (try? home.library.load(provider))?.descriptor
    let names = some(required.scopes)
    let words =
      required.scopes.isEmpty
      ? "the token does not have the required scope"
      : required.isChoice && required.scopes.count > 1
        ? "the token has none of the scopes \(names)" : "the token does not have the scope \(names)"
    let credential = account.credential
    if credential.isGiven || credential.isTyped {
      let page = descriptor?.key?.page.map { " at " + $0 } ?? ""
      return (words, Remedy(parts: [.words("make a token with this scope" + page)]))
    }
    let options = descriptor?.loginOptions(for: required) ?? []
    if options.isEmpty { return (words, "\(credmgr: "providers", provider) to see the purposes of \"login --for\"") }
    return (words, "\(credmgr: ["login", provider, "--account", account.name] + options)")
  }
}
