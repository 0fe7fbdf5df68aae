import CredmgrCredentialManager
import Testing
import CredmgrMessages

@testable import CredmgrCommands

/// Tests the lines that credmgr exchanges with other programs.
@Suite struct GitAnswerTests {
  /// git-credential(1): the decoded parts of a URL replace all earlier values.
  @Test(arguments: [
    ("https://a.example", ["https", "a.example", nil, nil, nil]),
    ("https://ada:p%40ss@a.example:8443//repo.git/", ["https", "a.example:8443", "ada", "p@ss", "repo.git"]),
    ("https://ada@a.example?x", ["https", "a.example", "ada", nil, "?x"]),
    ("https://a.example/x@b.example", ["https", "a.example", nil, nil, "x@b.example"]),
    ("cert:///file", ["cert", "", nil, nil, "file"]),
  ]) func partsOfAURL(_ url: String, _ parts: [String?]) throws {
    let request = try GitCredential(Array("host=b.example\nusername=eve\nurl=\(url)\n".utf8))
    #expect(["protocol", "host", "username", "password", "path"].map { request[$0] } == parts)
  }

  @Test(arguments: [
    "url=a.example", "url=://a.example", "url=https://a%0a.example", "url=https://a%zz.example",
    "url=https://a.example\nhost=b.example", "url=https://a:%00@a.example",
  ]) func aURLThatMayBeReadInTwoWays(_ text: String) {
    #expect(throws: CommandError.self) { try GitCredential(Array(text.utf8)) }
  }

  /// No provider can claim such a host.
  @Test func aURLWithAnEncodedHost() throws {
    #expect(try GitCredential(Array("url=https://a.example%2F.evil.example".utf8)).uri == nil)
  }

  @Test func aLine() throws {
    #expect(try GitCredential.line("username", "ada=x \t\u{85}ü") == "username=ada=x \t\u{85}ü\n")
  }

  /// The text may come from a descriptor, a provider or an imported file.
  @Test(arguments: ["ada\nhost=evil.example", "\n", "ada\r", "ada\r\nprotocol=https", "a\0b"])
  func aValueCannotAddALine(_ value: String) {
    for name in ["username", "password", "state[]"] {
      #expect(throws: CommandError.self) { try GitCredential.line(name, value) }
    }
  }

  @Test(arguments: [
    ("ghcr.io", "ghcr.io"), ("https://Registry.example:443/", "registry.example"),
    ("https://index.docker.io/v1/", "https://index.docker.io/v1/"), ("docker.io", "https://index.docker.io/v1/"),
    ("https://registry-1.docker.io/", "https://index.docker.io/v1/"), ("docker.io/acme", "docker.io/acme"),
  ]) func aRegistry(_ text: String, _ address: String) throws { #expect(try RegistryAddress(text).text == address) }

  @Test(arguments: [
    "https://h/x?token=S3CRET", "h/x#S3CRET", "https://u:S3CRET@h/", "https:/u:S3CRET@h/x", "http//S3CRET@h/x",
    "https://u:12/S3CRET@h",
  ]) func anAddressWithASecretIsRefused(_ text: String) throws {
    let error = try #require(throws: CommandError.self) { try RegistryAddress(text) }
    #expect(error.message?.text.contains("S3CRET") == false)
  }
}
