extension KubectlHelper: RefusingHelper {}

extension Command {
  /// `kubectl-credential` as far as it needs only the vault.
  static var kubectlAnswer: Command {
    kubectlCommand { invocation, context throws(CommandError) in
      try HelperSession(helper: KubectlHelper(invocation, context), context: context).answer()
    }
  }
}
