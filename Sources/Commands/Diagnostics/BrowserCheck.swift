import Platform
import Text

extension Doctor {
  mutating func checkBrowser() {
    switch SessionKind(environment: context.environment) {
    case .ssh:
      note(.browser, "you are here by SSH: a login shows a code or an address for the browser on your own machine")
    case .headless: note(.browser, "there is no display: a login shows a code or an address for a browser elsewhere")
    case .desktop: checkDesktop()
    }
    for login in context.source.deadLogins() {
      problem(
        .browser,
        "a login that was killed still takes the addresses of \(some(login.schemes.map { $0 + ":" })) (\(login.entry))",
        hints: "\(run: "rm", login.entry)")
    }
  }

  private mutating func checkDesktop() {
    let candidates = Browser.candidates()
    // The last two are tried whether somebody asked for them or not.
    for candidate in candidates.dropLast(2) where candidate.file == nil {
      problem(
        .browser, "BROWSER names \(quoted(candidate.command)), and there is no such command",
        hints: "\(run: "unset", "BROWSER")")
    }
    let hasOwn = candidates.dropLast(2).contains { $0.file != nil }
    if let variable = Display.unreachable(environment: context.environment), !hasOwn {
      let display = quoted(context.environment(variable) ?? "")
      problem(
        .browser, "\(variable) is \(display), and there is no such display, so that no browser can be shown",
        hints: "\(run: "unset", variable)")
    } else if let found = candidates.lazy.compactMap(\.file).first {
      ok(.browser, "\"\(found)\" shows it")
    } else {
      problem(
        .browser, "there is no command that shows a browser",
        hints: "\(run: "sudo", "apt-get", "install", "xdg-utils"), or set BROWSER",
        "\(credmgr: "login", "ID", "--no-browser"), which prints an address")
    }
  }
}
