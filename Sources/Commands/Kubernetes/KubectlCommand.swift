import CredmgrCredentialManager
import CredmgrHTTP
import CredmgrJSON
import CredmgrPlatform
import CredmgrText

extension Command {
  static let kubectlCredential = kubectlCommand { invocation, context throws(CommandError) in
    try KubectlHelper(invocation, context).get(context)
  }

  static func kubectlCommand(
    _ run: @escaping @Sendable (Invocation, Context) throws(CommandError) -> Void
  ) -> Command {
    Command(
      name: "kubectl-credential", operands: "ID", operandCount: 1...1,
      summary: "Answer kubectl as its exec credential plugin", options: [account],
      notes: [
        "Add this to a user in the kubeconfig: exec: {apiVersion: client.authentication.k8s.io/v1, command: credmgr, "
          + "args: [kubectl-credential, ID], interactiveMode: Never, provideClusterInfo: true}.",
        "credmgr never prompts here. If a cluster rejects a token before it expires, kubectl asks again and gets a new "
          + "token, so the next command works.",
      ], examples: [("credmgr kubectl-credential keycloak", "Show the answer for kubectl")],
      withoutJSON: "it speaks the protocol of kubectl", run: run)
  }
}

struct KubectlHelper: HelperProtocol {
  let provider: String?
  let name: String?
  let question: ExecQuestion
  /// `nil` if kubectl does not name the cluster.
  let server: URI?

  init(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let provider = try context.provider(invocation.operands[0])
    let name = try context.account(invocation, of: provider)
    let question = try ExecQuestion(context.environment("KUBERNETES_EXEC_INFO"))
    server = try question.server.map { text throws(CommandError) in
      do throws(ExecQuestion.ServerFault) { return try ExecQuestion.server(text) } catch {
        // The other program notes it.
        if context.online != nil { context.source.noteRefusal(provider, name, to: "kubectl for " + error.server) }
        throw .usage(error.sentence)
      }
    }
    (self.provider, self.name, self.question) = (provider, name, question)
  }

  var recipient: String { "kubectl" + (server.map { " for " + $0.withoutQueryAndFragment.text } ?? "") }

  func choice(_ provider: String, _ context: Context) -> AccountChoice? { name.map { AccountChoice($0, .option) } }

  /// Returns the account with a valid token, and a valid ID token if it has one, that was not refused before.
  func freshAccount(_ name: String?, of provider: String, _ context: Context) throws(CredentialError) -> Account {
    let account: Account
    do throws(CredentialError) { account = try goodAccount(name, of: provider, context) } catch {
      switch error {
      case .notAgreed, .notUsableAlone, .clusterNeeded:
        if context.online != nil { context.source.noteRefusal(provider, name, to: recipient) }
      default: break
      }
      throw error
    }
    // Without a cluster, two requests may be for two different clusters.
    guard let server, try context.source.rejectIfRepeated(account, process: ParentProcess.identity, server: server.text)
    else { return account }
    return try goodAccount(account.name, of: provider, context)
  }

  private func goodAccount(
    _ name: String?, of provider: String, _ context: Context
  ) throws(CredentialError) -> Account {
    // An ID token may expire before the access token.
    func isOver(_ account: Account) -> Bool {
      account.credential.idTokenExpiresAt.map { $0 <= context.clock.now() } ?? false
    }
    var account = try context.source.handOut(name, of: provider, by: .kubectl, to: .server(server))
    if isOver(account) {
      account = try context.source.handOut(
        account.name, of: provider, by: .kubectl, to: .server(server), RefreshPolicy(always: true, acceptsNewer: true))
    }
    if isOver(account) { throw .loginNeeded(provider: provider, account: account.name, .expired) }
    // A token that was verified when it was issued needs no network here.
    return try context.source.withVerifiedIDToken(account, for: .kubectl)
  }

  func answer(_ account: Account, _ context: Context) -> String {
    let credential = account.credential
    // Clusters with OpenID Connect check the ID token, so prefer it.
    let token = credential.idToken ?? credential.accessToken
    var status: [JSONValue.Member] = [.init("token", .string(token.reveal()))]
    let expiries = [credential.expiresAt, credential.idTokenExpiresAt].compactMap { $0 }
    if let expiresAt = expiries.min() {
      // kubectl reuses the token until this time, so report an earlier time, which leaves kubectl time for its last
      // request. If the token has almost expired, report its real expiry.
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

/// kubectl's request (client-go credential plugins, "Input and output formats").
struct ExecQuestion: Equatable {
  let version: String
  /// The cluster's server, if the kubeconfig sets `provideClusterInfo`.
  let server: String?

  /// Parses `KUBERNETES_EXEC_INFO`. Never prompts, even if the variable says that a user is present.
  init(_ question: String?) throws(CommandError) {
    let standard = "client.authentication.k8s.io/v1"
    guard let question, !question.isEmpty else {
      (version, server) = (standard, nil)
      return
    }
    guard let value = try? JSONValue.parse(Array(question.utf8)), let version = value["apiVersion"]?.text else {
      throw .usage("invalid KUBERNETES_EXEC_INFO: it is not from kubectl")
    }
    guard [standard, standard + "beta1"].contains(version) else {
      throw .usage("unsupported apiVersion \"\(version)\"", hint: "set \"apiVersion: \(standard)\" in the kubeconfig")
    }
    for (member, name) in [(value, "apiVersion"), (value, "spec"), (value["spec"], "cluster")]
    where member?.repeats(name) == true { throw .usage("invalid KUBERNETES_EXEC_INFO: duplicate \"\(name)\"") }
    self.version = version
    let cluster = value["spec"]?["cluster"]
    // A server that is not a text counts as missing.
    server =
      switch cluster {
      case nil, .null?: nil
      case let cluster?: cluster.repeats("server") ? "" : cluster["server"]?.text ?? ""
      }
  }

  /// Why a server gets no token, without anything that may be secret.
  struct ServerFault: Error {
    let server: String
    let sentence: String
  }

  /// Parses a server's URL strictly. kubectl accepts more URLs, but their hosts would be ambiguous.
  static func server(_ text: String) throws(ServerFault) -> URI {
    let uri: URI
    do { uri = try URI(parsing: text) } catch {
      let (server, reason): (String, HTTPError.InvalidURI) =
        if case .invalidURI(let text, let reason) = error { (text, reason) } else { ("", .host) }
      let sentence = "cannot give out a token for the cluster: invalid server \"\(server)\": \(reason.sentence)"
      throw ServerFault(server: server, sentence: sentence)
    }
    if uri.isSecure || (uri.scheme == "http" && uri.isLoopback) { return uri }
    let sentence = "cannot give out a token for the cluster: \"\(uri.origin)\" does not use TLS"
    throw ServerFault(server: uri.origin, sentence: sentence)
  }
}
