import CredmgrCredentialManager
import CredmgrMessages
import CredmgrPlatform

extension Command {
  static let setup = Command(
    name: "setup", operands: "[SOURCE]", operandCount: 0...1, summary: "Set up a provider step by step",
    options: [
      Option("--for", value: "PURPOSES", "purposes whose scopes to request, such as git,packages"),
      Option("--json", "print the ways to the first token as JSON and ask nothing"),
    ],
    notes: [
      "SOURCE is a provider from \"credmgr providers\", the path of a descriptor (with \"/\" or \".yaml\"), or the "
        + "https URL of an MCP server, an API or an issuer. Without SOURCE, credmgr lists a few, and searches the "
        + "providers for a word.",
      "credmgr prefers a login that needs no registration: a client that the provider registers, a document with the "
        + "client's metadata that you publish, or a key or token that you make at the provider. For your own client, "
        + "it shows the values for the provider's page, and prompts for the client ID and the secret. It warns if a "
        + "value does not have the provider's form. Then it logs in, offers to set up git and docker, and "
        + "names the command for programs that read a variable.",
      "If the descriptor has variables, such as the host of your own server, credmgr shows their defaults, and prompts "
        + "for those without one.",
      "If you press Control-C before credmgr adds the provider, credmgr stores nothing. After that, the next \"credmgr "
        + "setup\" continues with the login.",
    ],
    examples: [
      ("credmgr setup", "Choose a provider, and get the first token"),
      ("credmgr setup openai", "Store an API key"),
      ("credmgr setup https://mcp.example.org/mcp", "Set up an MCP server"),
      ("credmgr setup https://id.example.org", "Set up a provider by the URL of its issuer"),
    ]
  ) { invocation, context throws(CommandError) in
    try Setup(context, purposes: invocation.value("--for")).run(invocation.operands.first)
  }
}
