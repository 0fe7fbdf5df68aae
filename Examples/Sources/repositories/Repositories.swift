import Credmgr

/// Sends a request to an API for the account that is logged in: `repositories PROVIDER URL`.
@main struct Repositories {
  static func main() async {
    let arguments = CommandLine.arguments
    guard arguments.count == 3 else { return print("usage: repositories PROVIDER URL") }
    do {
      let credentials = try Credentials(userAgent: "repositories/1.0")
      let token = try await credentials.token(for: arguments[1], minimumValidity: .minutes(1))
      print("\(token.account) may \(token.scope.joined(separator: ", "))")
      let response = try await credentials.send(Request(url: arguments[2]), for: arguments[1])
      print(response.status, String(decoding: response.body, as: UTF8.self))
    } catch CredentialsError.loginRequired(let provider, _) {
      print("run \"credmgr login \(provider)\"")
    } catch {
      print("\(error)")
    }
  }
}
