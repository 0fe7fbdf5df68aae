import Platform

/// Emphasis, on a terminal that shows it to a person who wants it (no-color.org).
struct Style: Sendable {
  let isOn: Bool

  /// No emphasis.
  static let plain = Style(isOn: false)

  private init(isOn: Bool) { self.isOn = isOn }

  /// What is right for a place.
  ///
  /// - Parameter descriptor: where the text goes, 1 or 2.
  init(_ descriptor: Int32, environment: (String) -> String? = Environment.value) {
    isOn =
      Terminal.isTerminal(descriptor) && (environment("NO_COLOR") ?? "").isEmpty
      && ![nil, "", "dumb"].contains(environment("TERM"))
  }

  /// What is there to be found.
  func bold(_ text: String) -> String { shown(text, "1") }
  /// What is wrong.
  func red(_ text: String) -> String { shown(text, "1;31") }
  /// What is well.
  func green(_ text: String) -> String { shown(text, "32") }
  /// What is worth knowing.
  func yellow(_ text: String) -> String { shown(text, "33") }

  private func shown(_ text: String, _ code: String) -> String { isOn ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text }
}
