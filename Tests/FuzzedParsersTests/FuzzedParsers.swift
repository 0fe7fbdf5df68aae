// The parsers of outside input, with requirements for all input that they accept. The tests run them on the same few
// thousand inputs each time; script/fuzz builds this file into a libFuzzer program. Each of the two defines `require`.

import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
import CredmgrDescriptors
import CredmgrXML
import CredmgrYAML

@testable import CredmgrCommands
@testable import CredmgrCredentialManager
@testable import CredmgrOAuth
import CredmgrText

/// Reads any bytes. It may reject them, but an accepted input must meet the parser's requirements.
typealias FuzzedParser = @Sendable ([UInt8]) -> Void

private func text(_ bytes: [UInt8]) -> String? { String(validating: bytes, as: UTF8.self) }

private let descriptor = """
  provider: fuzz
  title: Fuzz
  grant: [authorization_code, device_code]
  endpoints:
    authorization: https://id.example.org/authorize
    token: https://id.example.org/token
    device_authorization: https://id.example.org/device
    identity: https://id.example.org/me
  account: user.login
  scope: { default: [a, b] }
  response: { keep: [instance_url] }
  client: { authentication: none }
  hosts: [api.example.org]
  """

private let library = DescriptorLibrary(directories: []) { _ in nil }

private let client: Client = {
  guard let loaded = try? library.load(Array(descriptor.utf8), name: "fuzz.yaml"),
    let client = try? Client(descriptor: loaded.descriptor, identifier: "client", secret: nil, variables: [:])
  else { preconditionFailure("the fuzzer's own descriptor has an error") }
  return client
}()

/// A response whose first byte selects its status and label.
private func answer(_ bytes: [UInt8]) -> HTTPResponse {
  let first = bytes.first ?? 0
  let statuses = [200, 200, 400, 401, 429, 500, 200, 302]
  let labels = ["application/json", "application/x-www-form-urlencoded", "text/html", ""]
  var fields = HTTPFields()
  let label = labels[Int(first >> 3) % labels.count]
  if !label.isEmpty { fields.append("Content-Type", label) }
  return HTTPResponse(status: statuses[Int(first) % statuses.count], fields: fields, body: Array(bytes.dropFirst()))
}

private let fuzzedAddress: URI = {
  guard let uri = try? URI(parsing: "https://api.example.org/a?b") else { preconditionFailure("not a URI") }
  return uri
}()

/// The parsers by the names that script/fuzz uses.
let fuzzedParsers: [String: FuzzedParser] = [
  "yaml": { _ = try? Node.parse(bytes: $0, name: "fuzz.yaml") },
  "descriptor": { bytes in
    let (descriptor, findings) = library.check(bytes, name: "fuzz.yaml")
    require(descriptor != nil || findings.contains { $0.severity == .error }, "no descriptor without an error")
    guard let descriptor, !findings.contains(where: { $0.severity == .error }) else { return }
    _ = try? Client(descriptor: descriptor, identifier: "client", secret: nil, variables: [:])
  },
  "json": { bytes in
    guard let value = try? JSONValue.parse(bytes) else { return }
    let again = try? JSONValue.parse(Array(value.encoded.utf8))
    require(again == value, "what was written is what was read")
  },
  "xml": { bytes in
    guard let value = try? XMLDocument.parse(bytes) else { return }
    require(value.members?.count == 1, "a document has one root")
    require(bytes.firstPlace(of: "<!DOCTYPE".utf8) == nil, "no document type gets through")
  },
  "digest": { bytes in
    guard let text = text(bytes), let challenge = DigestChallenge(text) else { return }
    let request = HTTPRequest(method: "GET", uri: fuzzedAddress)
    let header = challenge.answer(request, name: "ada", password: "s3cret", clientNonce: "c")
    require(!header.contains("s3cret"), "a password is not sent")
  },
  "uri": { bytes in
    guard let text = text(bytes), let uri = try? URI(parsing: text) else { return }
    require((try? URI(parsing: uri.text)) == uri, "a URI's own text is that URI")
    require(!uri.text.utf8.contains { $0 <= 0x20 || $0 == 0x7F }, "no blank or control character gets through")
  },
  "form": { bytes in
    guard let text = text(bytes) else { return }
    let parameters = FormParameters(decoding: text)
    require(FormParameters(decoding: parameters.encoded).pairs.count == parameters.pairs.count, "as many as before")
  },
  "redirect": { bytes in
    guard let text = text(bytes) else { return }
    let redirectURI = "http://127.0.0.1:8080/callback"
    _ = try? client.redirectParameters(pasted: text, redirectURI: redirectURI, inFragment: false)
    _ = try? client.redirectParameters(
      pasted: redirectURI + "?" + text, redirectURI: redirectURI, inFragment: text.hasPrefix("#"))
    _ = client.outOfBandParameters(pasted: text)
  },
  "token": { bytes in
    for leg in [EndpointKind.token, .refresh] {
      let credential = try? client.outcome(answer(bytes), leg, grant: .authorizationCode, scope: ["a"], now: 1_000_000)
        .issued().credential
      guard let credential else { continue }
      require(!credential.accessToken.reveal().isEmpty, "an access token is not empty")
      let again = try? Credential(decoding: credential.encoded)
      require(again?.accessToken.reveal() == credential.accessToken.reveal(), "what is kept is what is read")
    }
  }, "device": { _ = try? client.deviceAuthorization(answer($0), scope: [], now: 1_000_000) },
  "identity": { _ = try? client.identity(answer($0)).name },
  "template": { bytes in
    guard let text = text(bytes) else { return }
    _ = try? Template(parsing: text)
  },
  "moment": { bytes in
    guard let text = text(bytes) else { return }
    if let moment = Moment(text) {
      require(Moment(moment.text) == moment, "a moment's own text is that moment")
    }
    _ = Moment(httpDate: text)
  },
  "git": { bytes in
    guard let request = try? GitCredential(bytes) else { return }
    require(request == (try? GitCredential(bytes)), "the same each time")
  },
  "remote": { bytes in
    guard let text = text(bytes), let remote = RemoteAddress(text) else { return }
    require(!remote.host.isEmpty && !remote.host.contains { "/@?# ".contains($0) }, "a host is a host")
  },
  "challenge": { bytes in
    guard let text = text(bytes) else { return }
    for challenge in Challenge.all(in: [text]) {
      require(!challenge.scheme.isEmpty, "a scheme has a name")
      require(challenge.parameters.names.allSatisfy { HTTPFields.isValid(name: $0) }, "a parameter has a name")
    }
  },
  "metadata": { bytes in
    guard let address = try? Issuer("https://mcp.example.org/mcp"),
      let location = ProtectedResourceMetadata.locations(of: address).first
    else { preconditionFailure("the fuzzer's own address has an error") }
    let response = HTTPResponse(status: 200, body: bytes)
    let resource = try? ProtectedResourceMetadata(response, of: address, at: location)
    for server in resource?.authorizationServers ?? [] { require(server.isSecure, "only https") }
    _ = try? AuthorizationServerMetadata(
      response, of: address, at: MetadataLocation(uri: location, specification: "RFC 8414"))
  },
  "issuer": { bytes in
    guard let text = text(bytes) else { return }
    _ = try? Issuer(text)
  },
  "claims": { bytes in
    guard let text = text(bytes) else { return }
    _ = JWTClaims.parse(text)
  },
  "jwt": { bytes in
    guard let text = text(bytes), let jwt = SignedJWT(text) else { return }
    require(!SignedJWT.isEncrypted(text), "an encrypted JWT has other parts")
    require((try? jwt.verify(with: nil, [.es256, .rs256], secret: nil)) == nil, "nothing is valid without a key")
    if (try? jwt.checkHeader(types: ["jwt"])) != nil {
      require(jwt.algorithmName?.lowercased() != "none", "a JWT without a signature is refused")
    }
  },
  "jwks": { bytes in
    guard let value = try? JSONValue.parse(bytes), let keys = KeySet(value) else { return }
    require(KeySet(keys.value) == keys, "what is kept is what is read")
  },
  "import": { bytes in
    guard let file = try? ImportText(path: "/fuzz", bytes) else { return }
    for source in ImportSource.all {
      for entry in (try? source.entries(file)) ?? [] {
        guard case .cut(let ranges) = entry.removal else { continue }
        require(ranges.allSatisfy { $0.upperBound <= bytes.count }, "only bytes of the file are cut")
        require(file.without(ranges).count < bytes.count, "something is cut")
      }
    }
  }, "credential": { _ = try? Credential(decoding: Secret(bytes: $0)) },
]

/// Valid inputs as seeds for mutations.
let fuzzedSeeds: [String: [String]] = [
  "yaml": [descriptor, "a: &x [1, 'two', \"three\\u0041\"]\nb: *x\nc: |\n  text\n"], "descriptor": [descriptor],
  "json": [#"{"a":[1,-2.5e3,true,null,"t\u00e9\ud83d\ude00"],"b":{}}"#],
  "xml": [
    "<?xml version='1.0' encoding='UTF-8'?><!--c--><a xmlns:x='urn:x' b='1'><x:c>t&amp;&#65;</x:c><c><![CDATA[<]]></c></a>"
  ],
  "digest": ["Digest realm=\"a\\\"b\", qop=\"auth, auth-int\", algorithm=SHA-256, nonce=\"n\", opaque=\"o\""],
  "uri": ["https://ada@id.example.org:8443/a%20b/../c?x=1&y=%C3%A9#part", "http://[::1]:80/"],
  "form": ["access_token=a%2Bb+c&scope=repo,user&empty=&flag"],
  "redirect": [
    "code=abc&state=xyz&iss=https%3A%2F%2Fid.example.org", "http://127.0.0.1:8080/callback?error=access_denied",
  ],
  "token": [
    #"\u{0}{"access_token":"a","token_type":"Bearer","expires_in":"3600","refresh_token":"r","scope":"a b"}"#,
    "\u{8}access_token=a&expires_in=3600&scope=a,b", #"\u{2}{"error":"invalid_grant","error_description":"used up"}"#,
  ],
  "device": [
    #"\u{0}{"device_code":"d","user_code":"ABCD-EFGH","verification_uri":"https://id.example.org/d","expires_in":900,"interval":5}"#
  ], "identity": [#"\u{0}{"user":{"login":"ada"}}"#],
  "template": ["https://{host}/a/{tenant}?b={c}", "{base64(client_id:client_secret)}"],
  "moment": ["2026-11-21T12:00:00.5+01:00", "Sat, 21 Nov 2026 12:00:00 GMT", "1795262400"],
  "git": [
    "protocol=https\nhost=example.org:8443\npath=a/b\nusername=ada\nwwwauth[]=Basic realm=\"x\"\ncapability[]=authtype\n\n"
  ], "remote": ["https://ada@example.org:8443/acme/notes.git", "git@example.org:acme/notes.git"],
  "challenge": [
    "Bearer realm=\"a\\\"b\", scope=x,Basic realm=y, Negotiate YII==, DPoP algs=\"ES256 PS256\"",
    "Bearer resource_metadata=https://mcp.example.org/.well-known/oauth-protected-resource/mcp, error=\"x",
  ],
  "metadata": [
    #"{"resource":"https://mcp.example.org/mcp","authorization_servers":["https://id.example.org"],"scopes_supported":["a"]}"#,
    #"{"issuer":"https://mcp.example.org/mcp","token_endpoint":"https://10.0.0.1/t","code_challenge_methods_supported":["S256"]}"#,
  ],
  "issuer": ["https://id.example.org/tenant"],
  "import": [
    "github.com:\n    users:\n        ada:\n            oauth_token: t\n    user: ada\n    oauth_token: t\n",
    "https://a%2fb:p%3aw@127.0.0.1%3a8443/x\n", "machine a.example login \"x\" # c\n password y\nmacdef z\n\ndefault\n",
    #"{"auths":{"a.example":{"auth":"YWRhOnB3"}},"credsStore":"x"}"#, "//a.example/:_authToken=\"t\"\n",
    "[registries.x]\ntoken = \"t\\u0041\" # c\n[pypi]\npassword: p\naws_secret_access_key = k\n",
    "export GH_TOKEN='t' # c\n",
  ],
  "jwt": ["eyJhbGciOiJFUzI1NiIsImtpZCI6ImEiLCJ0eXAiOiJKV1QifQ.eyJzdWIiOiJhZGEifQ.AAAA"],
  "jwks": [
    #"{"keys":[{"kty":"EC","crv":"P-256","kid":"a","use":"sig","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"},{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},{"kty":"RSA","n":"AQAB","e":"AQAB","alg":"RS256"}]}"#
  ],
  "claims": ["eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEiLCJleHAiOjE3OTUyNjI0MDB9."],
]
