import CredmgrCredentialManager
import CredmgrMessages

extension Command {
  /// The command in a login's desktop entry. It passes the browser's address to the waiting login.
  static let redirect = Command(
    name: "redirect", operands: "FOLDER URL", operandCount: 2...2,
    summary: "Pass an address to the login that waits for it", options: []
  ) { invocation, context throws(CommandError) in
    guard context.source.handOver(redirect: invocation.operands[1], runtime: invocation.operands[0]) else {
      throw .failed(CredentialError.noLoginWaits.message)
    }
  }
}
