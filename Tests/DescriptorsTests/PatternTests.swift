import Testing

@testable import CredmgrDescriptors

struct PatternTests {
  @Test(arguments: [
    ("[0-9]+", "123", true), ("[0-9]+", "", false), ("[0-9]+", "12a", false), ("[0-9]+", "a12", false),
    ("v[0-9]+\\.[0-9]+", "v21.0", true), ("v[0-9]+\\.[0-9]+", "v21x0", false), ("[a-z0-9_-]+", "my-shop_1", true),
    ("[A-Za-z0-9.-]+", "contoso.example", true), ("^[a-f]{2,3}$", "abc", true), ("[a-f]{2,3}", "abcd", false),
    ("[a-f]{2}", "a", false), ("a{2,}", "aaaa", true), ("a{0}", "", true), ("(ab|c)*d", "abcabd", true),
    ("(?:ab|c)d", "cd", true), ("(ab|c)d", "abcd", false), ("a|b|", "", true), ("a|b|c", "b", true),
    ("colou?r", "color", true), ("[^/]+", "a/b", false), ("[^/]+", "ä…", true), ("\\d\\D\\w\\W\\s\\S", "1a_- x", true),
    ("[\\w.-]+", "a_1.b-", true), ("[]-]", "]", false), ("[\\]-]+", "]-", true), ("a.c", "a\nc", false),
    ("a.c", "aéc", true), ("", "", true), ("", "a", false), ("(a*)*b", "aaab", true),
  ]) func matches(_ text: String, _ value: String, _ isMatch: Bool) {
    #expect(Pattern(text)?.matches(value) ?? false == isMatch)
  }

  @Test(arguments: [
    "(", ")", "a)", "[", "[]", "[z-a]", "*", "a**", "a+?", "a{", "a{2", "a{3,2}", "a{1001}", "\\", "\\b", "\\1",
    "(?=a)", "(?<n>a)", "a{1,1000}{2}", "((a{1000}){1000})", "a^b", "a$b", "[[:alpha:]]", "\\p{L}",
  ]) func rejectsOtherExpressions(_ text: String) { #expect(Pattern(text) == nil) }

  @Test func nestedGroupsHaveALimit() {
    let text = String(repeating: "(", count: 1000) + "a" + String(repeating: ")", count: 1000)
    #expect(Pattern(text) == nil)
  }

  /// A backtracking matcher would need 2 to the power of 40 steps for these.
  @Test(arguments: ["(a+)+b", "(a|a)*b", "(a*)*b", "(a?){40}a{40}b"])
  func theTimeIsLimited(_ text: String) { #expect(Pattern(text)?.matches(String(repeating: "a", count: 40)) == false) }
}
