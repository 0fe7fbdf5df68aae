import Testing

@testable import CredmgrHTTP

struct HTTPMessageTests {
  @Test func fieldsIgnoreCase() {
    var fields: HTTPFields = ["Accept": "a", "X-One": "1", "accept": "b"]
    #expect(fields["ACCEPT"] == "a")
    #expect(fields.values("accept") == ["a", "b"])
    fields.set("aCCept", "c")
    #expect(fields.map(\.name) == ["aCCept", "X-One"])
    fields.set("New", "n")
    fields.append("New", "m")
    #expect(fields.values("new") == ["n", "m"])
    fields.removeAll(named: "NEW")
    #expect(fields["New"] == nil)
    #expect(fields["X-On"] == nil)
  }

  @Test(arguments: [
    ("Accept", true), ("X-GitHub-Api-Version", true), ("a!#$%&'*+-.^_`|~9", true), ("", false), ("a b", false),
    ("a:", false), ("a\r\n", false), ("é", false), ("a\0", false), ("(a)", false),
  ]) func fieldNames(name: String, isValid: Bool) { #expect(HTTPFields.isValid(name: name) == isValid) }

  @Test(arguments: [
    ("", true), ("a b\tc", true), ("é", true), ("a\r", false), ("a\n b", false), ("a\0", false), ("a\u{7F}", false),
  ]) func fieldValues(value: String, isValid: Bool) { #expect(HTTPFields.isValid(value: value) == isValid) }

  @Test(
    arguments: [
      ("application/json", "application/json"), ("Application/JSON ; charset=utf-8", "application/json"),
      (" text/plain\t", "text/plain"), ("", ""), (nil, nil),
    ] as [(String?, String?)])
  func mediaType(value: String?, expected: String?) {
    var response = HTTPResponse(status: 200)
    if let value { response.fields.append("content-type", value) }
    #expect(response.mediaType == expected)
  }

  @Test func descriptionsHideSecrets() throws {
    let request = HTTPRequest(
      method: "POST", uri: try URI(parsing: "https://h/p?code=secret"), fields: ["Authorization": "secret"],
      body: Array("secret".utf8))
    let response = HTTPResponse(status: 200, fields: ["Set-Cookie": "secret"], body: Array("secret".utf8))
    var dumped = "\(request) \(response) \(request.fields) \(Array(request.fields))"
    dump(request, to: &dumped)
    dump(response, to: &dumped)
    dump(request.fields, to: &dumped)
    dumped += String(reflecting: request) + String(reflecting: response) + String(reflecting: request.fields)
    #expect(!dumped.contains("secret"))
    #expect(!dumped.contains("115, 101"))
    #expect("\(request)" == "POST https://h/p?…")
    #expect("\(response)" == "200, 6 bytes")
  }
}
