extension Command {
  static let simulate = Command(
    name: "simulate", operands: "ID|FILE", operandCount: 1...1,
    summary: "Simulate a provider on this machine",
    options: [
      Option("--port", value: "N", "port of 127.0.0.1 to listen on (default: any free port)"),
      Option("--set", value: "NAME=VALUE", repeats: true, "variable value that every request must contain"),
      Option("--lifetime", value: "DURATION", "lifetime of access tokens"),
      Option("--grace", value: "DURATION", "time for which a replaced refresh token still works (default: 0s)"),
      Option("--fault", value: "NAME", repeats: true, "simulate one of the faults below"),
      Option("--git-host", value: "HOST:PORT", repeats: true, "git host to write into the descriptor"),
      Option("--keep-redirect", "allow redirect URIs outside this machine"),
      Option(
        "--client-secret-file", value: "FILE",
        "file with the client secret, or with its key and certificate (default: for practice)"),
      descriptorFolders, json,
    ],
    notes: [
      "The simulator prints its address, a descriptor to add, and the client ID and secret. It runs until you stop it "
        + "with Ctrl-C. Its log is at /simulator/log, and a protected resource at /simulator/resource.",
      "At a terminal, it prints the commands that log in. When it stops, it removes the provider that they added.",
      "The faults are html, not-json, huge, redirect, error-200, drop, wrong-state, no-rotation, no-expiry, "
        + "server-error, wrong-issuer, nonce and slow=MS.",
    ],
    examples: [
      ("credmgr simulate github", "Try a login without the provider"),
      ("credmgr simulate notes.yaml --port 8080 --fault server-error", "Try a login while the server fails"),
    ], asksNobody: true, needsHome: false
  ) { invocation, context throws(CommandError) in
    try context.online?.simulate(invocation, context)
  }
}
