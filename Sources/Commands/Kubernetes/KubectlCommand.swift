import CredentialManager
import HTTP
import JSON
import Platform
import Text

extension Command {
  static let kubectlCredential = Command(
    name: "kubectl-credential", operands: "ID", operandCount: 1...1,
    summary: "The exec credential plugin of kubectl", options: [account],
    notes: [
      "In the kubeconfig, below users: exec: {apiVersion: client.authentication.k8s.io/v1, command: credmgr, "
        + "args: [kubectl-credential, ID], interactiveMode: Never, provideClusterInfo: true}.",
      "Nobody is asked anything. When a cluster refuses a token before its time, kubectl asks again, and gets another "
        + "one: the next command works.",
    ], examples: [("credmgr kubectl-credential keycloak", "what kubectl would get")]
  ) { invocation, context throws(CommandError) in
    let provider = try context.provider(invocation.operands[0])
    let name = try context.account(invocation, of: provider)
    let question = try ExecQuestion(context.environment("KUBERNETES_EXEC_INFO"))
    let server = try question.server.map { text throws(CommandError) in
      do throws(ExecQuestion.ServerFault) { return try ExecQuestion.server(text) } catch {
        context.source.noteRefusal(provider, name, to: "kubectl for " + error.server)
        throw .usage(error.sentence)
      }
    }
    let helper = KubectlHelper(provider: provider, name: name, question: question, server: server)
    try HelperSession(helper: helper, context: context).get()
  }
}

private struct KubectlHelper: HelperProtocol {
  let provider: String?
  let name: String?
  let question: ExecQuestion
  /// `nil` where kubectl does not say which cluster it is for.
  let server: URI?

  var recipient: String { "kubectl" + (server.map { " for " + $0.withoutQueryAndFragment.text } ?? "") }

  func choice(_ provider: String, _ context: Context) -> AccountChoice? { name.map { AccountChoice($0, .option) } }

  /// The account with a token, and an ID token where it has one, that is good, and that was not refused before.
  func freshAccount(_ name: String?, of provider: String, _ context: Context) throws(CredentialError) -> Account {
    let account: Account
    do throws(CredentialError) { account = try goodAccount(name, of: provider, context) } catch {
      switch error {
      case .notAgreed, .clusterNeeded: context.source.noteRefusal(provider, name, to: recipient)
      default: break
      }
      throw error
    }
    // Without the cluster, whoever asks twice may be asking for two of them.
    guard let server, try context.source.rejectIfRepeated(account, process: ParentProcess.identity, server: server.text)
    else { return account }
    return try goodAccount(account.name, of: provider, context)
  }

  private func goodAccount(
    _ name: String?, of provider: String, _ context: Context
  ) throws(CredentialError) -> Account {
    // A provider may let its ID tokens end before the access tokens that came with them.
    func isOver(_ account: Account) -> Bool {
      account.credential.idTokenExpiresAt.map { $0 <= context.clock.now() } ?? false
    }
    var account = try context.source.handOut(name, of: provider, by: .kubectl, to: .server(server))
    if isOver(account) {
      account = try context.source.handOut(
        account.name, of: provider, by: .kubectl, to: .server(server), RefreshPolicy(always: true))
    }
    if isOver(account) { throw .loginNeeded(provider: provider, account: account.name, .expired) }
    return account
  }

  func answer(_ account: Account, _ context: Context) -> String {
    let credential = account.credential
    // The ID token is what clusters with OpenID Connect look at, where there is one; else the access token.
    let token = credential.idToken ?? credential.accessToken
    var status: [JSONValue.Member] = [.init("token", .string(token.reveal()))]
    let expiries = [credential.expiresAt, credential.idTokenExpiresAt].compactMap { $0 }
    if let expiresAt = expiries.min() {
      // kubectl keeps the token until then: long enough before the end that what it asks last is answered. Of a token
      // that is nearly over already, the end itself.
      let early = expiresAt - credential.margin
      let end = early > context.clock.now() ? early : expiresAt
      status.append(.init("expirationTimestamp", .string(end.text)))
    }
    let answer: JSONValue = [
      "apiVersion": .string(question.version), "kind": "ExecCredential", "status": .object(status),
    ]
    return answer.encoded + "\n"
  }

  func answer(_ login: HostLogin) -> String { "" }
}

/// What kubectl asks for (client-go credential plugins, "Input and output formats").
struct ExecQuestion: Equatable {
  let version: String
  /// The server of the cluster, where the kubeconfig says `provideClusterInfo`.
  let server: String?

  /// - Parameter question: `KUBERNETES_EXEC_INFO`. Nobody is ever asked, whatever it says of a person who is there.
  init(_ question: String?) throws(CommandError) {
    let standard = "client.authentication.k8s.io/v1"
    guard let question, !question.isEmpty else {
      (version, server) = (standard, nil)
      return
    }
    guard let value = try? JSONValue.parse(Array(question.utf8)), let version = value["apiVersion"]?.text else {
      throw .usage("KUBERNETES_EXEC_INFO is not what kubectl writes")
    }
    guard [standard, standard + "beta1"].contains(version) else {
      throw .usage("kubectl asks for \"\(version)\", which is not known", hint: "the kubeconfig can say \(standard)")
    }
    for (member, name) in [(value, "apiVersion"), (value, "spec"), (value["spec"], "cluster")]
    where member?.repeats(name) == true { throw .usage("KUBERNETES_EXEC_INFO has \"\(name)\" more than once") }
    self.version = version
    let cluster = value["spec"]?["cluster"]
    // What is there and is no text is no server either.
    server =
      switch cluster {
      case nil, .null?: nil
      case let cluster?: cluster.repeats("server") ? "" : cluster["server"]?.text ?? ""
      }
  }

  /// Why the token is not given for a server, without what may be a secret in it.
  struct ServerFault: Error {
    let server: String
    let sentence: String
  }

  /// The URL of a server as it is read everywhere. kubectl reads more than this; nobody could tell whom it means.
  static func server(_ text: String) throws(ServerFault) -> URI {
    let uri: URI
    do { uri = try URI(parsing: text) } catch {
      let (server, reason): (String, HTTPError.InvalidURI) =
        if case .invalidURI(let text, let reason) = error { (text, reason) } else { ("", .host) }
      let sentence = "the server \"\(server)\" of the cluster cannot be read, so the token is not given for it"
      throw ServerFault(server: server, sentence: sentence + ": \(reason.sentence)")
    }
    if uri.isSecure || (uri.scheme == "http" && uri.isLoopback) { return uri }
    let sentence = "the cluster \"\(uri.origin)\" is not reached over TLS, so the token is not given for it"
    throw ServerFault(server: uri.origin, sentence: sentence)
  }
}
