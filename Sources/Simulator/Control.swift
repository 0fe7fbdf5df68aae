import CredmgrHTTP
import CredmgrJSON

// The provider's extra pages: for users, and for tests that inspect and change its state.

extension Simulation {
  static let controlPrefix = "/simulator/"

  mutating func control(_ request: HTTPRequest) -> HTTPResponse {
    let path = request.uri.path.dropFirst(Self.controlPrefix.count)
    let name = path.split(separator: "/").first.map(String.init) ?? ""
    let form = FormParameters(decoding: String(decoding: request.body, as: UTF8.self))
    do throws(Refusal) {
      switch (name, request.method) {
      case ("resource", _): return try resource(request)
      case ("consent", "POST"): return try consent(form)
      case ("device", "GET"), ("device", "HEAD"): return devicePage(request)
      case ("device", "POST"):
        try decideDevice(userCode: form[first: "user_code"] ?? "", account: decision(form))
        return .page(200, title: "Done", body: "<p>You can close this page and go back to the device.</p>")
      case ("log", "GET"): return .json(200, state.log.json)
      case ("expire", "POST"):
        let now = now
        for token in state.tokens.keys { state.tokens[token]?.expiresAt = now }
        return .json(200, ["expired": .integer(state.tokens.count)])
      case ("revoke", "POST"):
        for consent in state.consents.indices { state.consents[consent].isRevoked = true }
        return .json(200, ["revoked": .integer(state.consents.count)])
      case ("approve-device", "POST"):
        try decideDevice(userCode: request.uri.queryParameters[first: "user_code"], account: "ada")
        return .json(200, ["approved": true])
      default: return .json(404, Refusal.noSuchPath.json)
      }
    } catch {
      state.log.refused(at: name, error)
      switch name {
      case "resource":
        state.log.count(.resourceRefused)
        return unauthorized(error, at: resourceMetadataURL(at: request.uri.origin))
      case "approve-device": return .json(404, error.json)
      default: return .page(error)
      }
    }
  }

  private mutating func consent(_ form: FormParameters) throws(Refusal) -> HTTPResponse {
    let account = try decision(form)
    guard let identifier = form[first: "request"], let subject = state.pages.removeValue(forKey: identifier) else {
      throw .consentUnknown
    }
    switch subject {
    case .authorization(let terms): return try decide(terms, account: account)
    case .temporaryCredentials(let token): return try decide(temporaryToken: token, account: account)
    }
  }

  /// Returns the account that the user approves as; `nil` if the user declines.
  private func decision(_ form: FormParameters) throws(Refusal) -> String? {
    switch form[first: "decision"] {
    case "approve":
      guard let account = form[first: "account"], (1...64).contains(account.unicodeScalars.count),
        account.unicodeScalars.allSatisfy({ $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) })
      else { throw .malformedAccount }
      return account
    case "deny": return nil
    default: throw .missing("decision")
    }
  }
}
