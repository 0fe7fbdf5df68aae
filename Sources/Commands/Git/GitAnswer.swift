import CredmgrCredentialManager

extension Command {
  /// The part of `git-credential` that needs only the vault.
  static var gitAnswer: Command {
    gitCommand { invocation, context throws(CommandError) in
      let operation = invocation.operands[0]
      guard ["get", "store"].contains(operation) else { throw .handOver(input: nil) }
      let lifetime = try lifetime(invocation, context)
      try context.withInput { input throws(CommandError) in
        let request = try GitCredential(input)
        // The user must learn which scope is missing.
        if RequiredScope(challenges: request.list("wwwauth")) != nil { throw .handOver(input: input) }
        guard let git = try GitHelper(request, context) else { return }
        if operation == "store" { return try store(git, for: lifetime, context) }
        try HelperSession(helper: git, context: context).answer()
      }
    }
  }
}
