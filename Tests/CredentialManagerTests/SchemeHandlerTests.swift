import Platform
import Testing

@testable import CredentialManager
import Text

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

  @Test func nothingElseIsForgotten() {
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
