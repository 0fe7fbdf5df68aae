import HTTP
import OAuth

/// What the person's browser shows at the end of a login.
extension Page {
  static func loggedIn(_ title: String) -> Page {
    Page(
      .done, title: "Consent given: \(title)",
      text: "credmgr finishes the login in the terminal. You can close this window.")
  }

  static var stray: Page {
    Page(
      .ignored, title: "Not the answer that is waited for",
      text: """
        This address does not belong to the login that is under way, so nothing was changed.
        Use the page that credmgr opened last, or begin again in the terminal.
        """)
  }

  static func refused(_ error: OAuthError, _ title: String) -> Page {
    guard case .refused(_, let response) = error else {
      return Page(.refused, title: "The login did not work", text: "The terminal says what is wrong.")
    }
    return Page(
      .refused, title: "Login refused: \(title)",
      text: "\(response.words ?? response.code)\n\nYou can close this window, and try again in the terminal.")
  }
}
