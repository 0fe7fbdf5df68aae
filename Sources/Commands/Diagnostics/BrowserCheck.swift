import CredmgrPlatform
import CredmgrText

extension Doctor {
  mutating func checkBrowser() {
    switch SessionKind(environment: context.environment) {
    case .ssh:
      note(.browser, "this is an SSH session; logins show a code or an address for the browser on your own machine")
    case .headless: note(.browser, "no display; logins show a code or an address for a browser on another machine")
    case .desktop: checkDesktop()
    }
    for login in context.source.deadLogins() {
      problem(
        .browser,
        "a login that was killed is still registered to open \(some(login.schemes.map { $0 + ":" })) (\(login.entry))",
        hints: "\(run: "rm", login.entry)")
    }
  }

  private mutating func checkDesktop() {
    let candidates = Browser.candidates()
    // The last two are defaults that the user did not request.
    for candidate in candidates.dropLast(2) where candidate.file == nil {
      problem(
        .browser, "BROWSER names the command \(quoted(candidate.command)), which was not found",
        hints: "\(run: "unset", "BROWSER")")
    }
    let hasOwn = candidates.dropLast(2).contains { $0.file != nil }
    if let variable = Display.unreachable(environment: context.environment), !hasOwn {
      let display = quoted(context.environment(variable) ?? "")
      problem(
        .browser, "cannot open a browser: \(variable) names the display \(display), which does not exist",
        hints: "\(run: "unset", variable)")
    } else if let found = candidates.lazy.compactMap(\.file).first {
      ok(.browser, "logins use \"\(found)\"")
    } else {
      problem(
        .browser, "no command found that opens a browser",
        hints: "\(run: "sudo", "apt-get", "install", "xdg-utils") or set BROWSER",
        "\(credmgr: "login", "ID", "--no-browser") to log in with a printed address")
    }
  }
}
