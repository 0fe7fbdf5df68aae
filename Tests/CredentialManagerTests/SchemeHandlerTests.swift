import CredmgrPlatform
import Testing

@testable import CredmgrCredentialManager
import CredmgrText

@Suite struct SchemeHandlerTests {
  @Test(arguments: [
    ("", "[Default Applications]\ntype=ours;\n"),
    ("[Added Associations]\na=b;\n", "[Added Associations]\na=b;\n\n[Default Applications]\ntype=ours;\n"),
    ("[Default Applications]\ntype=theirs\n", "[Default Applications]\ntype=ours;theirs\n"),
    (
      "# mine\n[Default Applications]\nother=x;\n\n[G]\ntype=y\n",
      "# mine\n[Default Applications]\ntype=ours;\nother=x;\n\n[G]\ntype=y\n"
    ), ("[Default Applications]\ntype=theirs;more;", "[Default Applications]\ntype=ours;theirs;more;"),
  ]) func isPreferredAndForgotten(before: String, after: String) {
    var choices = MIMEApplications(before)
    choices.prefer("ours", for: "type")
    #expect(choices.text == after)
    choices.forget { $0 == "ours" }
    let isKnown = before.contains("[Default Applications]")
    #expect(isKnown ? choices.text == before : choices.text.hasSuffix("[Default Applications]\n"))
  }

  private static let type = "x-scheme-handler/my.app"

  /// Searches like the desktop: in lists of choices, in caches, and in the entries.
  @Test(arguments: [
    ("config/mimeapps.list", "[Default Applications]\n\(type)=other.desktop\n"),
    ("config/gnome-mimeapps.list", "[Default Applications]\n\(type) = other.desktop ;\n"),
    ("config/mimeapps.list", "[Added Associations]\n\(type)=credmgr-login-1.desktop;other.desktop;\n"),
    ("share/mimeinfo.cache", "[MIME Cache]\n\(type)=other.desktop;\n"),
    ("share/other.desktop", "[Desktop Entry]\nMimeType=text/x;\(type);\n"),
    ("system/defaults.list", "[Default Applications]\n\(type)=other.desktop\n"),
  ]) func aSchemeBelongsToAnotherApplication(_ name: String, _ text: String) throws {
    let fixture = try Fixture()
    let folders = ["config", "share", "system"].map { fixture.root + "/" + $0 }
    for folder in folders { try File.createDirectory(folder) }
    try File.replace(folders[0] + "/mimeapps.list", Array("[Default Applications]\n\(Self.type)x=a.desktop;\n".utf8))
    try File.replace(folders[1] + "/credmgr-login-1.desktop", Array("MimeType=\(Self.type);\n".utf8))
    #expect(SchemeHandler.owner(of: "my.app", in: folders) == nil)
    try File.replace(fixture.root + "/" + name, Array(text.utf8))
    #expect(SchemeHandler.owner(of: "my.app", in: folders + [fixture.root + "/nowhere"]) == "other.desktop")
  }

  @Test func directoriesOfApplications() {
    let desktop = SchemeHandler.Desktop(entries: "/h/.local/share/applications", choices: "/h/.config/mimeapps.list")
    #expect(
      desktop.folders { ["XDG_DATA_DIRS": "/a:/b"][$0] } == [
        "/h/.config", "/h/.local/share/applications", "/etc/xdg", "/a/applications", "/b/applications",
      ])
  }

  /// Adding a provider, or changing a variable for a login, reports whose scheme it takes.
  @Test func anotherApplicationsSchemeNeedsConsent() throws {
    let fixture = try Fixture(environment: ["XDG_CONFIG_HOME": "~/config", "XDG_DATA_HOME": "~/share"])
    try File.createDirectory(fixture.root + "/config")
    try File.replace(
      fixture.root + "/config/mimeapps.list", Array("[Default Applications]\n\(Self.type)=other.desktop\n".utf8))
    let text = Fixture.endpoints + "\nvariables: { r: { default: \"http://127.0.0.1/cb\" } }\nredirect: \"{r}\""
    let variables = ["r": "my.app:/cb"]
    var seen: [NewPlace] = []
    #expect(throws: CredentialError.self) { try fixture.addOwn(text, variables: variables) { _ in false } }
    try fixture.addOwn(text, variables: variables) {
      seen = $0
      return true
    }
    #expect(seen.map(\.kind) == [.scheme(owner: "other.desktop")] && seen.map(\.name) == ["my.app:/cb"])
    // The consent is stored.
    try fixture.addOwn(text, replaces: true)
    fixture.user.paste { _, state in ["my.app:/cb?code=code-1&state=\(state)"] }
    fixture.http.then(.token("token-1"), .identity("ana"))
    _ = try fixture.login { $0.pastes = true }

    try fixture.addOwn(text, variables: ["r": "http://127.0.0.1/cb"], replaces: true)
    let error = #expect(throws: CredentialError.self) { try fixture.login { $0.variables = variables } }
    guard case .peculiar(_, let places, false)? = error else { throw CredentialError.interrupted }
    #expect(places.map(\.kind) == [.scheme(owner: "other.desktop")])
  }

  /// A scheme also receives other applications' answers (RFC 8252, 7.1), which only a state tells apart.
  @Test func withoutAStateNoAnswerIsAccepted() throws {
    let fixture = try Fixture(environment: ["XDG_CONFIG_HOME": "~/config", "XDG_DATA_HOME": "~/share"])
    let text = "\nstate: optional\nvariables: { r: { default: \"http://127.0.0.1/cb\" } }\nredirect: \"{r}\""
    try fixture.addOwn(Fixture.endpoints + text)
    #expect(throws: CredentialError.schemeWithoutState(provider: "example", redirect: "my.app:/cb")) {
      try fixture.login { $0.variables = ["r": "my.app:/cb"] }
    }
    #expect(fixture.user.opened.isEmpty)
    fixture.user.paste { _, _ in ["my.app:/cb?code=code-1"] }
    fixture.http.then(.token("token-1"), .identity("ana"))
    _ = try fixture.login { ($0.variables, $0.pastes) = (["r": "my.app:/cb"], true) }
    #expect(fixture.user.steps.last == .paste(redirect: "my.app:/cb"))
    #expect(!File.exists(fixture.root + "/share") && !File.exists(fixture.root + "/config"))
  }

  @Test func otherEntriesStay() {
    let text = "[Default Applications]\na=b;c\n[Added Associations]\n#ours=ours;\nx=ours.desktop;\n"
    var choices = MIMEApplications(text)
    choices.forget { $0 == "ours" }
    #expect(choices.text == text)
  }

  @Test(arguments: [
    ("/usr/bin/credmgr", "/usr/bin/credmgr"), ("/a b/c", "\"/a b/c\""), ("/50%", "/50%%"), ("a\"b", "\"a\\\\\"b\""),
    ("$HOME", "\"\\\\$HOME\""), ("a\\b", "\"a\\\\\\\\b\""),
  ]) func argumentsAreQuoted(argument: String, expected: String) { #expect(SchemeHandler.quoted(argument) == expected) }

  @Test(arguments: [
    ("myapp:/callback", "myapp"), ("Com.Example.App://x", "com.example.app"), ("https://example.org/", nil),
    ("mailto:ada@example.org", nil), ("file:///etc", nil), ("1x:/a", nil), ("a b:/c", nil), ("nothing", nil),
  ]) func onlyAnAppsOwnScheme(redirect: String, expected: String?) {
    #expect(SchemeHandler.scheme(of: redirect) == expected)
  }
}
