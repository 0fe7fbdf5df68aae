import HTTP
import JSON

// What the provider has beside its own endpoints: pages for a person, and what a test asks and changes.

extension Simulation {
  /// Answers what goes to `/simulator/`.
  mutating func control(_ request: HTTPRequest) -> HTTPResponse {
    let path = request.uri.path.dropFirst(Self.controlPrefix.count)
    let first = path.split(separator: "/").first.map(String.init) ?? ""
    switch (first, request.method) {
    case ("resource", _): return resource(request)
    case ("consent", "POST"): return consent(request)
    case ("device", "GET"), ("device", "HEAD"): return devicePage(request)
    case ("device", "POST"): return device(request)
    case ("log", "GET"): return .json(200, state.log.json)
    case ("expire", "POST"):
      let now = now
      for token in state.tokens.keys { state.tokens[token]?.expiresAt = now }
      return .json(200, ["expired": .integer(state.tokens.count)])
    case ("revoke", "POST"):
      for consent in state.consents.indices { state.revoke(consent) }
      return .json(200, ["revoked": .integer(state.consents.count)])
    case ("approve-device", "POST"): return approveDevice(request)
    default: return .json(404, ["error": .string(Reason.noSuchPath.sentence)])
    }
  }

  private func form(_ request: HTTPRequest) -> FormParameters {
    FormParameters(decoding: String(decoding: request.body, as: UTF8.self))
  }

  private mutating func consent(_ request: HTTPRequest) -> HTTPResponse {
    let form = form(request)
    do throws(Refusal) {
      let account = try decision(form)
      guard let identifier = form[first: "request"], let subject = state.pages.removeValue(forKey: identifier)
      else {
        throw .request(.consentUnknown)
      }
      switch subject {
      case .authorization(let terms): return decide(terms, account: account)
      case .temporaryCredentials(let token): return decide(temporaryToken: token, account: account)
      }
    } catch {
      state.log.refused(at: "consent", error)
      return .page(error)
    }
  }

  private mutating func device(_ request: HTTPRequest) -> HTTPResponse {
    let form = form(request)
    do throws(Refusal) {
      let account = try decision(form)
      try decideDevice(userCode: form[first: "user_code"] ?? "", account: account)
      return .page(
        200, title: "Done", body: "<p>You can close this page and go back to the device.</p>")
    } catch {
      state.log.refused(at: "device", error)
      return .page(error)
    }
  }

  private mutating func approveDevice(_ request: HTTPRequest) -> HTTPResponse {
    do throws(Refusal) {
      try decideDevice(userCode: request.uri.queryParameters[first: "user_code"], account: "ada")
      return .json(200, ["approved": true])
    } catch {
      state.log.refused(at: "device", error)
      return .json(404, ["error": .string(error.reason.sentence)])
    }
  }

  /// The account that a person approves as; `nil` for no.
  private func decision(_ form: FormParameters) throws(Refusal) -> String? {
    switch form[first: "decision"] {
    case "approve": try Self.account(form[first: "account"])
    case "deny": nil
    default: throw .request(.missing("decision"))
    }
  }
}
