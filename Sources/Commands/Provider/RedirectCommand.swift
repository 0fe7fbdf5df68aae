import CredentialManager

extension Command {
  /// What the desktop entry of a login starts: hands the address that a browser was sent to over to the login that
  /// waits.
  static let redirect = Command(
    name: "redirect", operands: "FOLDER URL", operandCount: 2...2,
    summary: "Hand an address over to the login that waits for it", options: []
  ) { invocation, context throws(CommandError) in
    guard context.source.handOver(redirect: invocation.operands[1], runtime: invocation.operands[0]) else {
      throw .failed(CredentialError.noLoginWaits.message)
    }
  }
}
