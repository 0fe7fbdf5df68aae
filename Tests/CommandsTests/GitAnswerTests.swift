import CredentialManager
import Testing

@testable import Commands

/// What is written for another program, line by line, and what is read from one.
@Suite struct GitAnswerTests {
  @Test func aLine() throws {
    #expect(try GitCredential.line("username", "ada=x \t\u{85}ü") == "username=ada=x \t\u{85}ü\n")
  }

  /// It may come from a descriptor, from a provider or from a file that was imported.
  @Test(arguments: ["ada\nhost=evil.example", "\n", "ada\r", "ada\r\nprotocol=https", "a\0b"])
  func aValueIsNoSecondLine(_ value: String) {
    for name in ["username", "password", "state[]"] {
      #expect(throws: CommandError.self) { try GitCredential.line(name, value) }
    }
  }

  @Test(arguments: [
    ("ghcr.io", "ghcr.io"), ("https://Registry.example:443/", "registry.example"),
    ("https://index.docker.io/v1/", "https://index.docker.io/v1/"),
  ]) func aRegistry(_ text: String, _ address: String) throws { #expect(try RegistryAddress(text).text == address) }

  @Test(arguments: [
    "https://h/x?token=S3CRET", "h/x#S3CRET", "https://u:S3CRET@h/", "https:/u:S3CRET@h/x", "http//S3CRET@h/x",
    "https://u:12/S3CRET@h",
  ]) func anAddressWithASecretIsNoRegistry(_ text: String) throws {
    let error = try #require(throws: CommandError.self) { try RegistryAddress(text) }
    #expect(error.message?.text.contains("S3CRET") == false)
  }
}
