// Fuzzes whatever parses what comes from outside. Built and run by script/fuzz; it is no part of the ordinary build.
//
// CREDMGR_FUZZ names the parser. A parser may refuse anything; what it takes has to hold what is said below.

import Cryptography
import Glibc
import HTTP
import JSON
import Providers
import YAML

@testable import Commands
@testable import CredentialManager
@testable import OAuth

/// libFuzzer's own `main` is not used: the package manager gives this program one.
@_silgen_name("LLVMFuzzerRunDriver")
func runDriver(
  _ count: UnsafeMutablePointer<Int32>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
) -> Int32

/// Says what does not hold, and ends the program, which the fuzzer takes for a crash.
func require(_ condition: Bool, _ words: StaticString) {
  guard !condition else { return }
  print("does not hold: \(words)")
  abort()
}

typealias Target = @Sendable ([UInt8]) -> Void

func text(_ bytes: [UInt8]) -> String? { String(validating: bytes, as: UTF8.self) }

let descriptor = """
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

let library = DescriptorLibrary(directories: []) { _ in nil }

let client: Client = {
  guard let loaded = try? library.load(Array(descriptor.utf8), name: "fuzz.yaml"),
    let client = try? Client(descriptor: loaded.descriptor, identifier: "client", secret: nil, variables: [:])
  else {
    print("the fuzzer's own descriptor has an error")
    abort()
  }
  return client
}()

/// An answer whose status and label the first byte chooses.
func answer(_ bytes: [UInt8]) -> HTTPResponse {
  let first = bytes.first ?? 0
  let statuses = [200, 200, 400, 401, 429, 500, 200, 302]
  let labels = ["application/json", "application/x-www-form-urlencoded", "text/html", ""]
  var fields = HTTPFields()
  let label = labels[Int(first >> 3) % labels.count]
  if !label.isEmpty { fields.append("Content-Type", label) }
  return HTTPResponse(status: statuses[Int(first) % statuses.count], fields: fields, body: Array(bytes.dropFirst()))
}

let targets: [String: Target] = [
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
    for leg in [Leg.token, .refresh] {
      let credential = try? client.credential(
        answer(bytes), leg, grant: .authorizationCode, scope: ["a"], now: 1_000_000)
      guard let credential else { continue }
      require(!credential.accessToken.reveal().isEmpty, "an access token is not empty")
      let again = try? Credential(decoding: credential.encoded)
      require(again?.accessToken.reveal() == credential.accessToken.reveal(), "what is kept is what is read")
    }
  },
  "device": { _ = try? client.deviceAuthorization(answer($0), scope: [], now: 1_000_000) },
  "identity": { _ = try? client.accountName(answer($0)) },
  "template": { bytes in
    guard let text = text(bytes) else { return }
    _ = try? Template(parsing: text)
  },
  "moment": { bytes in
    guard let text = text(bytes) else { return }
    if let moment = Moment.parse(text) {
      require(Moment.parse(Moment.format(moment)) == moment, "a moment's own text is that moment")
    }
    _ = Moment.parseHTTPDate(text)
  },
  "git": { bytes in
    guard let request = try? GitCredential(bytes) else { return }
    require(request == (try? GitCredential(bytes)), "the same each time")
  },
  "remote": { bytes in
    guard let text = text(bytes), let remote = RemoteAddress(text) else { return }
    require(!remote.host.isEmpty && !remote.host.contains { "/@?# ".contains($0) }, "a host is a host")
  },
  "index": { bytes in
    let mark = Array((HostIndexFile.mark + "\n").utf8)
    for bytes in [bytes, mark + bytes] {
      guard let file = HostIndexFile(bytes) else { continue }
      guard let entries = file.entries else { continue }
      for entry in entries where entry.host == entry.host.lowercased() && !entry.host.isEmpty {
        require(file.provider(for: entry.host) != nil, "a host that is listed is found")
      }
      _ = file.isUnchanged(for: "fuzz")
    }
  },
  "issuer": { bytes in
    guard let text = text(bytes) else { return }
    _ = try? Issuer(text)
  },
  "claims": { bytes in
    guard let text = text(bytes) else { return }
    _ = JWTClaims.parse(text)
  },
  "credential": { _ = try? Credential(decoding: Secret(bytes: $0)) },
]

guard let name = unsafe getenv("CREDMGR_FUZZ").flatMap({ unsafe String(validatingCString: $0) }) else {
  print(targets.keys.sorted().joined(separator: "\n"))
  exit(0)
}
guard let chosen = targets[name] else {
  print("there is no \"\(name)\"; there are: \(targets.keys.sorted().joined(separator: " "))")
  exit(2)
}
/// A C function has no context, so that it finds its parser here.
let target = chosen

/// The name that libFuzzer looks for.
@_cdecl("LLVMFuzzerTestOneInput")
func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
  unsafe target(Array(UnsafeBufferPointer(start: bytes, count: count)))
  return 0
}

var count = CommandLine.argc
var arguments = unsafe CommandLine.unsafeArgv
exit(unsafe runDriver(&count, &arguments, testOneInput))
