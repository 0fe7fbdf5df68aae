import CredmgrCryptography
import CredmgrHTTP
import CredmgrPlatform
import CredmgrDescriptors
import Testing

@testable import CredmgrOAuth

/// The shipped descriptors.
enum ShippedDescriptors {
  /// Example answers for the limited fields of shipped descriptors.
  static let instance = "https://acme.my.salesforce.com"
  static let folder = Fixture.project + "/providers"

  static func identifiers() throws -> [String] {
    try File.names(in: folder).filter { $0.hasSuffix(".yaml") }.map { String($0.dropLast(5)) }
  }

  static func load(_ identifier: String) throws -> Descriptor {
    let library = DescriptorLibrary(directories: [folder]) { try? File.read($0, limit: 1 << 20) }
    return try library.load(identifier).descriptor
  }
}

/// Compares every request of the shipped descriptors with the last reviewed version.
struct ShippedRequestTests {
  private static let folder = String(#filePath.dropLast("ShippedRequestTests.swift".count)) + "Goldens"

  /// Example values for the variables without a default.
  private static let values = [
    "host": "github.example.org", "authenticating_institution": "128807", "context_institution": "91475",
    "institution": "128807", "temporary_credentials_url": "https://api.example.com/oauth/request_token",
    "authorization_url": "https://api.example.com/oauth/authorize",
    "token_url": "https://api.example.com/oauth/access_token", "api_host": "api.example.com",
    "redirect_uri": "https://app.example/callback", "domain": "tenant.example.com", "realm": "people",
    "server": "https://login.example.com/oauth2/default", "shop": "a-shop",
    "account_id": "ACCOUNT", "subject_id": "123456", "team_id": "TEAM123456", "key_id": "KEY1234567",
    "subdomain": "example", "environment_id": "01234567-89ab-cdef-0123-456789abcdef",
  ]

  /// Values for individual providers.
  private static let ownValues = [
    "amazon-cognito": ["region": "eu-west-1", "user_pool_id": "eu-west-1_EXAMPLE"],
    "netsuite": ["account_host": "1234567-sb1"],
    "oclc": ["redirect_uri": "ncipApp://success"],
  ]

  /// A key only for this test, for clients that sign (RFC 7518, 3.4: P-256).
  fileprivate static let privateKey = Secret(
    """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgHvc5atP3XwFZxeZT
    Gn03dRd6n1lQiIeX6vjmpfOdQPihRANCAAT4uhS0hpkyq+01EEKMhCbVeBQJa/B7
    6LqXTmudjPtCF7X6Hxl/+dV9sgQ/dLsJrwZe5CaB4bKyM6BWcYvBajN/
    -----END PRIVATE KEY-----
    """)

  @Test func everyDescriptorHasAGolden() throws {
    let goldens = try File.names(in: Self.folder).map { String($0.dropLast(".txt".count)) }
    #expect(try goldens == ShippedDescriptors.identifiers())
  }

  @Test(arguments: try ShippedDescriptors.identifiers()) func requests(_ identifier: String) throws {
    let found = try Self.requests(ShippedDescriptors.load(identifier))
    let path = "\(Self.folder)/\(identifier).txt"
    guard File.exists(path) else {
      try File.replace(path, Array(found.utf8))
      Issue.record("\(identifier).txt was recorded: look at it, and run again")
      return
    }
    #expect(String(decoding: try File.read(path, limit: 1 << 20), as: UTF8.self) == found)
  }

  /// Returns the redirect URI with the listening port, which is not part of the registration.
  private static func redirectURI(_ client: Client) throws -> String {
    switch try client.redirect() {
    case .loopback(let uri): uri.port == nil ? uri.replacing(port: 49152).text : uri.text
    case .elsewhere(let text), .outOfBand(let text): text
    }
  }

  private static func requests(_ descriptor: Descriptor) throws -> String {
    var given: [String: String] = [:]
    for variable in descriptor.variables
    where variable.defaultValue == nil && !variable.isOptional && !variable.isAtLogin {
      let own = ownValues[descriptor.identifier]?[variable.name]
      let value: String = try #require(own ?? values[variable.name], "a value for \(variable.name)")
      given[variable.name] = value
    }
    // An exchange reads the token of another issuer.
    for variable in descriptor.variables where variable.isAtExchange { given[variable.name] = "the-" + variable.name }
    // The institution is optional and changes the address.
    if descriptor.variable("institution") != nil { given["institution"] = values["institution"] }
    let signs = descriptor.assertion != nil
    let hasClient = descriptor.grants.contains { $0.traits.brought == nil }
    let client = try Client(
      descriptor: descriptor, identifier: hasClient ? "client-id" : "",
      secret: !hasClient ? nil : signs ? privateKey : descriptor.client.hasSecret ? Secret("s:e c") : nil,
      variables: given)
    var recorder = Recorder(client: client, redirectURI: try redirectURI(client))
    for grant in descriptor.grants { try recorder.record(grant) }
    try recorder.recordUse()
    // ECDSA signatures are random (FIPS 186-5, 6.4), but their input is not.
    return recorder.text.replacing(#/(eyJ[\w\-]+\.eyJ[\w\-]+)\.[\w\-]+/#) { $0.output.1 + ".SIGNATURE" }
  }
}

private struct Recorder {
  static let privateKey = ShippedRequestTests.privateKey.reveal()
  /// A key only for this test.
  static let rsaKey = """
    -----BEGIN PRIVATE KEY-----
    MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDOWKVbvT7FQW2C
    ljLwxEbBxkCDWReo8lZYOfmRtv/cWoqxaYZAYtu3C3y3WoCWF2BJjFd7PocTX2G1
    2kD95INhaBS1kFc03KYLZQ2K1kq+6UTu9bDfM0YSfwg+ime+VcfadK79y5hJ9BSD
    T+Gd5rCoa6rQEXMXZ/kxQ3q42gRYIqSB7516b3jPEqWGkBffLKvEbxjGBI6LUqUO
    3EsLqoO/E+dfZHBV5il0wUheISXzcFVac9/we9s2gmfanHTu1oJ18/PW6SpBgExy
    C7rBrHpcGPDvhYYa00/L8V/WjmJfKv8NC7w77gQqkEAmNt99VR0DIaVyS5LZgO97
    Xqt8ByHRAgMBAAECggEAALD9gthtj/8iCmHi8067tvVUAiynqTkApDneKx28GeVS
    xCPon37FTNsfae+GG+/28mAjleXgfCaMaa3SHGz/f1wi1PXnbjr+sm3o/59Wr5uR
    T89Sbk5aFytGSuFaAM0BnFWE6umboxnL13cfzXs4TyQnNccX2zWjDoYdmztzGsbS
    EIBPgdoKXmhRO8XhuragruJ4fZhYDiJ/UClofvJ/A/dflFtR0yzK2tJS08Iu29S2
    Njzxty2mT6V/8kn7gjNbm1vr3efim4hjc4n5b22b4/uSO4NVwQKvSTxd9t7JUEAb
    YqFAh2A6cuB1GPlyJkKU4BqCzel+a3d709QI+dWkvQKBgQDmdy/sJ9Sou4Fyt94y
    IbUnkJLrTR0tWjcDQTj08SXQwlFvi9p4TVIzE/jS+Csmjn00YDNTAX3Qr1GOdulW
    Lz1KusPLKZIALWgxTypoAUBQu7Bf03CG8zT6CbS+8cAItce/o4agxzfCVlDUWuQa
    r1+TRXnpBPiAP+kMn5tZ9mzqvQKBgQDlNVnEwi2+W6HwWJ2vzlgP5S45P5TqTO4H
    0tIT6oig9eTneqnqPnVr5feZWLxxb7+vRODogPoq05RrqF+DL6zfdQKfNjpLTbX/
    0tCkklHyuZ2nQnnrax1blV4bhDwEUVytZ84tFfqQ++YRz++f7/wuTDcMR6t79eeZ
    C+rL/YuOpQKBgEqUV1W8rfzMcN+G0Mi4T7818dVjZwW+I/9Ro/Tf9LTRrTjDsTct
    DmSpGeRrmssnYS0J1JIP8X8OvP21TV0ufE8qkSG1miGkkAsk6zws63s0wabA7bE+
    Eu63JV6FLPekm7dQW8i7rzecZxvRLe/UwMEPwpu9mA0ooWoMXGGIdUahAoGBAKxT
    rTdSasP47sreRUgdknX48ATYueRijH/TUGDq72hdF4m13rQf23aRAtQHND7xLqPe
    3F3SQsQaKTe78nuWR5oFxj/frHpbZd9+J6Hj5LriNRbA0xtdgEgQCB4WEG2Komw5
    ZHjfUnDZAsQXmuibrPU+FhEkfViIrGST4icWbGuFAoGABcRtFZJsJWiuM7qqk3CY
    NviUgy5jPKfWcR+SFTKgJKMzupZ0nHzJuVFpkt59U2eCwi9EEy4oZKgLezNLCdIr
    vqSdlipHjNZ7q+dlIix40TTFCo3dMN1EoKsErOiyI0CI38HqH3nr3W/sbhscosIn
    W4jjdXYd8asZUomagmfgJWw=
    -----END PRIVATE KEY-----
    """

  let client: Client
  let redirectURI: String
  var text = ""
  private var wasLine = false

  private var scope: [String] { client.descriptor.scope.requested }
  private let random = KnownRandom()

  init(client: Client, redirectURI: String) {
    self.client = client
    self.redirectURI = redirectURI
  }

  private mutating func add(_ title: String, _ request: HTTPRequest) { add(title + " " + request.golden(title)) }

  /// Puts an empty line between two entries unless both have one line.
  private mutating func add(_ entry: String) {
    let isLine = wasLine && !entry.contains("\n")
    wasLine = !entry.contains("\n")
    text += (text.isEmpty || isLine ? "" : "\n") + entry + "\n"
  }

  private var credential: Credential {
    var credential = Fixture.credential("access-token", grant: client.descriptor.grants.first ?? .authorizationCode)
    credential.refreshToken = Secret("refresh-token")
    credential.tokenSecret = Secret("token-secret")
    credential.sessionHandle = Secret("session-handle")
    credential.requestedScope = scope
    credential.redirectURI = redirectURI
    for variable in client.descriptor.variables where variable.isAtLogin {
      credential.variables[variable.name] = variable.choices.first ?? "the-" + variable.name
      if variable.isSecret, client.descriptor.isInKeyFile(variable) {
        let isElliptic = client.descriptor.assertion?.algorithm == .es256
        credential.variables[variable.name] = isElliptic ? Self.privateKey : Self.rsaKey
      }
    }
    for field in client.descriptor.endpoints.values.flatMap(\.response.keep) {
      // Only an address may become part of a URL unchanged.
      let isAddress = field.name.hasSuffix("_url")
      let address = field.pattern == nil ? "https://kept.example.com" : ShippedDescriptors.instance
      credential.kept[field.name] = isAddress ? address : "kept " + field.name
    }
    return credential
  }

  /// Records the steps of a login up to its token.
  mutating func record(_ grant: Grant) throws {
    var step = try LoginContext(
      grant, client, scope: scope, redirectURI: redirectURI, random: random, nonce: Fixture.nonce
    ).begin()
    while true {
      switch step {
      case .send(let exchange):
        let kind = exchange.kind.rawValue
        add(grant.rawValue == kind ? kind : "\(grant.rawValue): \(kind)", try exchange.request(Fixture.nonce))
        if exchange.kind.leg.issuesToken { return }
        step = try exchange.read(Self.answers[exchange.kind] ?? .json("{}"), Fixture.now)
      case .browse(let page):
        add("\(grant.rawValue): authorization", HTTPRequest(method: "GET", uri: page.uri))
        if page.brings == .accessToken { return }
        let parameters = page.parameters(bringing: page.brings == .code ? "the code" : "verifier")
        step = try page.read(parameters, Fixture.now)
      case .showCode(let device, let poll):
        if let page = device.verificationURIComplete { add("\(grant.rawValue): page \(page)") }
        step = .send(poll)
      case .awaitConsent(_, let poll): step = .send(poll)
      case .choose(let choice): step = try choice.read(0)
      case .prompt(let prompt):
        let labels = prompt.fields.map { $0.isSecret ? $0.label : $0.label + " (shown)" }.joined(separator: ", ")
        add("\(grant.rawValue): prompt for \(labels)")
        if grant.traits.brought == nil { return }
        step = try prompt.read(credential.variables, Fixture.now)
      case .done(let credential, _):
        if grant.traits.brought != nil { add("\(grant.rawValue): \(credential.accessToken.reveal())") }
        return
      }
    }
  }

  /// The answers before the token request.
  private static let answers: [EndpointKind: HTTPResponse] = [
    .deviceAuthorization: .json(
      """
      {"device_code":"the device code","user_code":"U-1","verification_uri":"https://v.example/",\
      "verification_url":"https://v.example/","expires_in":900,"interval":5}
      """),
    .temporaryCredentials: .form(
      "oauth_token=temporary&oauth_token_secret=temporary-secret&oauth_callback_confirmed=true"),
  ]

  /// Records the requests with a credential, and those before a client exists.
  mutating func recordUse() throws {
    if client.descriptor.endpoints[.registration] != nil {
      let redirect: String? =
        switch try client.redirect() {
        case .loopback(let uri): uri.text
        case .elsewhere(let text), .outOfBand(let text): text
        }
      add(
        "registration",
        try client.registrationRequest(redirectURI: redirect, initialAccessToken: nil, nonce: Fixture.nonce))
    }
    if client.descriptor.endpoints[.tokenExchange] != nil {
      add("token_exchange", try client.tokenExchangeRequest(credential, nonce: Fixture.nonce))
    }
    if client.descriptor.endpoints[.refresh] != nil {
      add("refresh", try client.refreshRequest(credential, nonce: Fixture.nonce))
    }
    if client.descriptor.endpoints[.introspection] != nil {
      add("introspection", try client.validationRequest(credential, nonce: Fixture.nonce).request)
    }
    for request in try client.revocationRequests(credential, nonce: Fixture.nonce) {
      add("revocation", request)
    }
    if client.descriptor.endpoints[.identity] != nil {
      add("identity", try client.identityRequest(credential, nonce: Fixture.nonce))
    }
    for host in client.hosts(for: credential) {
      let name = host.hasPrefix("*.") ? "any" + host.dropFirst() : host
      let method = if case .body = client.descriptor.headerStyle.location { "POST" } else { "GET" }
      let request = HTTPRequest(method: method, uri: try URI(parsing: "https://\(name)/resource?a=b"))
      add("api", try client.presenting(credential, on: request, nonce: Fixture.nonce))
    }
  }
}

extension HTTPRequest {
  private static let formType = "application/x-www-form-urlencoded"

  /// Returns the request as text, leaving out the usual parts: bodies that are forms, requests for JSON from endpoints,
  /// and bearer tokens for the API and identity. A line states every exception.
  fileprivate func golden(_ title: String) -> String {
    var lines = ["\(method) \(uri.text)"]
    let takesToken = title == "api" || title == "identity"
    let bearer = takesToken ? [HTTPField(name: "Authorization", value: "Bearer access-token")] : []
    for field in fields where !([HTTPField(name: "Accept", value: "application/json")] + bearer).contains(field) {
      if body.isEmpty || field != HTTPField(name: "Content-Type", value: Self.formType) {
        lines.append("\(field.name): \(field.value)")
      }
    }
    if fields["Accept"] == nil, title != "api", !title.hasSuffix("authorization") { lines.append("Accept: nothing") }
    if takesToken, fields["Authorization"] == nil { lines.append("Authorization: nothing") }
    if fields["Content-Type"] == nil, !body.isEmpty { lines.append("Content-Type: nothing") }
    return (lines + (body.isEmpty ? [] : [form])).joined(separator: "\n")
  }
}
