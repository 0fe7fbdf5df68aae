extension Command {
  /// The part of `docker-credential` that needs only the vault.
  static var dockerAnswer: Command {
    dockerCommand { invocation, context throws(CommandError) in
      guard invocation.operands == ["get"], !invocation.hasOptions else { throw .handOver(input: nil) }
      try context.withInput { input throws(CommandError) in
        try HelperSession(helper: DockerHelper(RegistryAddress(input), context), context: context).answer()
      }
    }
  }
}
