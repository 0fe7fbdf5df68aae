import Testing

@testable import CredmgrCredentialManager

struct RemoteAddressTests {
  @Test(
    arguments: [
      ("https://github.com/acme/tools.git", "github.com", ["acme", "tools"]),
      ("https://octo@GitHub.com:443/Acme/tools", "github.com", ["acme", "tools"]),
      ("https://octo:secret@github.com/acme/", "github.com", ["acme"]),
      ("ssh://git@github.com:22/acme/tools.git", "github.com", ["acme", "tools"]),
      ("git@github.com:acme/tools.git", "github.com", ["acme", "tools"]),
      ("github.com:/acme/tools", "github.com", ["acme", "tools"]),
      ("github.com/acme", "github.com", ["acme"]),
      ("github.com", "github.com", []),
      ("http://127.0.0.1:8080/team//demo.git?x#y", "127.0.0.1:8080", ["team", "demo"]),
      ("git.example:8443/acme", "git.example:8443", ["acme"]),
      ("https://[::1]:8443/a", "[::1]:8443", ["a"]),
      ("https://host/.git", "host", [".git"]), ("https://host/~a@b.example/x", "host", ["~a@b.example", "x"]),
      ("host/@acme", "host", ["@acme"]), ("git@github.com:acme?x", "github.com", ["acme"]),
    ])
  func isRead(_ text: String, _ host: String, _ path: [String]) throws {
    let address = try #require(RemoteAddress(text))
    #expect(address.host == host)
    #expect(address.path == path)
  }

  @Test(arguments: [
    "", "/srv/git/demo.git", "../demo.git", "file:///srv/demo.git", "https://", "https:///acme", "a b/c", "ho st",
    "octo:secret@github.com/acme", "https://octo:se/cret@github.com", "https:/octo:secret@github.com/acme",
    "https:/token@github.com/acme", "https:token@github.com/acme", "http//octo:secret@github.com/acme",
    "http//token@github.com/acme", "https;//octo:secret@github.com/acme", "//octo:secret@github.com/acme",
    "https://octo:12/34@github.com/acme", "octo:secret@github.com:acme",
  ]) func isNone(_ text: String) { #expect(RemoteAddress(text) == nil) }

  @Test(arguments: [
    ("https://octo:secret@github.com/acme", "https://github.com/acme"), ("https://token@h/a", "https://h/a"),
    ("https://h/a?access_token=x#y", "https://h/a"), ("git@github.com:acme/x", "git@github.com:acme/x"),
    ("git@github.com:acme?token", "git@github.com:acme"),
    ("ssh://git@h:22/a", "ssh://h:22/a"), ("h/@acme", "h/@acme"),
  ]) func isWrittenWithoutSecrets(_ text: String, _ written: String) { #expect(RemoteAddress.written(text) == written) }

  @Test(
    arguments: [
      ("https://h/acme", "https://h/acme/tools.git", true), ("https://h/acme", "git@h:ACME/tools", true),
      ("https://h", "https://h/acme", true), ("https://h/acme/tools", "https://h/acme/tools.git", true),
      ("https://h/acme", "https://h/acme-labs/tools", false), ("https://h/acme", "https://h", false),
      ("https://h/acme", "https://other/acme/tools", false), ("https://h/acme", "https://h:8443/acme/tools", false),
    ])
  func contains(_ rule: String, _ remote: String, _ isExpected: Bool) throws {
    #expect(try #require(RemoteAddress(rule)).contains(try #require(RemoteAddress(remote))) == isExpected)
  }
}
