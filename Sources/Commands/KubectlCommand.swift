import CredentialManager
import JSON
import Messages
import OAuth
import POSIX

extension Command {
  static let kubectlCredential = Command(
    name: "kubectl-credential", operands: "ID", operandCount: 1...1,
    summary: "The exec credential plugin of kubectl", options: [account],
    notes: [
      "In the kubeconfig, below users: exec: {apiVersion: client.authentication.k8s.io/v1, command: credmgr,",
      "args: [kubectl-credential, ID], interactiveMode: Never}",
    ]
  ) { invocation, context throws(CommandError) in
    let provider = try context.provider(invocation.operands[0])
    let name = try context.account(invocation, of: provider)
    let version = try apiVersion(context.environment("KUBERNETES_EXEC_INFO"))
    let account = try manager { () throws(CredentialError) in
      try context.source.freshAccount(name, of: provider)
    }
    context.source.noteHandOut(account, to: "kubectl")
    // The ID token is what clusters with OpenID Connect look at, where there is one; else the access token.
    let token = account.credential.idToken ?? account.credential.accessToken
    var status: [JSONValue.Member] = [.init("token", .string(token.reveal()))]
    if let expiresAt = account.credential.expiresAt {
      status.append(.init("expirationTimestamp", .string(Moment.format(expiresAt - account.credential.margin))))
    }
    let answer: JSONValue = [
      "apiVersion": .string(version), "kind": "ExecCredential", "status": .object(status),
    ]
    try context.output(answer.encoded + "\n")
    return .done
  }

  /// The version that kubectl asks for (client-go credential plugins, "Input and output formats"); v1 without a question.
  private static func apiVersion(_ question: String?) throws(CommandError) -> String {
    guard let question, !question.isEmpty else { return "client.authentication.k8s.io/v1" }
    guard let value = try? JSONValue.parse(Array(question.utf8)), let version = value["apiVersion"]?.text else {
      throw .usage("KUBERNETES_EXEC_INFO is not what kubectl writes")
    }
    guard ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"].contains(version) else {
      throw .usage(
        "kubectl asks for \"\(version)\", which is not known",
        hint: "the kubeconfig can say client.authentication.k8s.io/v1")
    }
    return version
  }
}
