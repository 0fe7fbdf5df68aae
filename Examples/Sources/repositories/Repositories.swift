import CredentialManager
import Curl
import HTTP

/// Asks an API for something, as whoever is logged in: `repositories PROVIDER URL`.
@main struct Repositories {
  static func main() async {
    let arguments = CommandLine.arguments
    guard arguments.count == 3 else { return print("usage: repositories PROVIDER URL") }
    do {
      let credentials = try Credentials { () throws(HTTPError) in try CurlClient(userAgent: "repositories/1.0") }
      // The value can be shared between tasks: here two of them ask at the same time.
      async let token = credentials.token(of: arguments[1], validFor: 60)
      async let answer = credentials.send(to: arguments[2], of: arguments[1])
      try await print("\(token.account) may \(token.scope.joined(separator: ", "))")
      try await print(answer.status, String(decoding: answer.body, as: UTF8.self))
    } catch CredentialError.loginNeeded(let provider, _, _) {
      print("run \"credmgr login \(provider)\"")
    } catch {
      print("\(error)")
    }
  }
}
