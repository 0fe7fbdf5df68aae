import CredmgrMessages

extension Command {
  static let validate = Command(
    name: "validate", operands: "ID", operandCount: 1...1, summary: "Ask the provider whether a credential is valid",
    options: [account, json],
    notes: [
      "The exit status is 0 if the token, key or password is valid and 3 if not. It is 4 if the provider does not say, "
        + "for example because a token does not have the right to ask (status 403).",
      "The JSON output has the claims of the ID token, and says whether credmgr verified its signature.",
    ],
    examples: [("credmgr validate github && echo valid", "Check a token in a script")]
  ) { invocation, context throws(CommandError) in
    let provider = try context.provider(invocation.operands[0])
    let name = try context.account(invocation, of: provider)
    let result = try manager(context.source.validate(name, of: provider))
    let isActive = result.validity == .active
    let idToken = try manager(context.source.idToken(of: result.account))
    if let doubt = idToken?.doubt {
      context.tell("cannot verify the ID token: \(doubt.message(titled: context.titled).text)")
    }
    try context.output(
      isActive ? "active\n" : "inactive\n",
      orJSON: [
        "provider": .string(provider), "account": .string(result.account.name), "active": .boolean(isActive),
        "id_token": idToken.map { ["verified": .boolean($0.isVerified), "claims": $0.claims] } ?? .null,
      ])
    if isActive { return }
    let command = context.source.needsLogin(result.account) ? "login" : "refresh"
    let account = accountOption(invocation.has("--account") ? result.account.name : nil)
    context.tell(hint: "\(credmgr: [command, provider] + account)")
    throw .ended(.loginNeeded)
  }
}
