import Credmgr

/// Sends a request to an API for the account that is logged in: `repositories PROVIDER URL`.
@main struct Repositories {
  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count == 3 else { return print("usage: repositories PROVIDER URL") }
    do {
      let credentials = try Credentials(userAgent: "repositories/1.0")
      let token = try credentials.token(of: arguments[1], validFor: .seconds(60))
      print("\(token.account) may \(token.scope.joined(separator: ", "))")
      let response = try credentials.send(to: arguments[2], of: arguments[1])
      print(response.status, String(decoding: response.body, as: UTF8.self))
    } catch .loginRequired(let provider, _) {
      print("run \"credmgr login \(provider)\"")
    } catch {
      print("\(error)")
    }
  }
}
