import Text

package enum Browser {
  /// Shows a URL in the first browser that takes it: the commands of `BROWSER`, separated by colons, then `xdg-open`,
  /// then `wslview`, which shows it in the browser of Windows. Variables that begin with `CREDMGR_` are not handed on.
  ///
  /// In a command `%s` stands for the URL and `%%` for a percent sign; without a `%s` the URL is the last argument.
  /// Words are separated by blanks, and quotes of both kinds hold a word together. No shell is involved; a command may
  /// involve one, so the URL is made harmless first.
  ///
  /// - Parameter patience: for how long a command may fail before it counts as running.
  package static func open(
    _ url: String, environment: [String: String] = Environment.all(), patience: Duration = .seconds(1)
  ) throws(POSIXError) -> Opening {
    let environment = environment.filter { !$0.key.hasPrefix("CREDMGR_") }
    for command in commands(url, browser: environment["BROWSER"] ?? "") {
      do throws(POSIXError) {
        let program = try Launcher.launch(command[0], Array(command.dropFirst()), environment: environment)
        guard let status = try program.status(within: patience) else { return .running(command[0], program) }
        if status == 0 { return .done }
      } catch .interrupted {
        throw .interrupted
      } catch {
        // Not found or not executable: the next one.
        continue
      }
    }
    return .failed
  }

  package enum Opening: Sendable {
    case done
    /// The command may be the browser itself, or fail later.
    case running(String, Launcher.Launched)
    case failed

    package var isOpen: Bool { if case .failed = self { false } else { true } }
  }

  /// The commands that would be tried, in order, each with its file; `nil` where there is none.
  package static func candidates(
    environment: [String: String] = Environment.all()
  ) -> [(command: String, file: String?)] {
    commands("", browser: environment["BROWSER"] ?? "").map { words in
      (words[0], try? Launcher.find(words[0], path: environment["PATH"]))
    }
  }

  static func commands(_ url: String, browser: String) -> [[String]] {
    // A text that begins with a dash would be an option of the browser.
    if url.hasPrefix("-") { return [] }
    let url = url.harmlessAddress
    let own = browser.split(separator: ":").map { words(of: String($0)) }.filter { !$0.isEmpty }
    return own.map { arguments($0, url) } + [["xdg-open", url], ["wslview", url]]
  }

  private static func arguments(_ words: [String], _ url: String) -> [String] {
    let pieces = words.map { $0.pieces(separatedBy: "%%") }
    let hasPlace = pieces.joined().contains { $0.firstPlace(of: "%s") != nil }
    return pieces.map { $0.map { $0.exchanging("%s", for: url) }.joined(separator: "%") } + (hasPlace ? [] : [url])
  }

  private static func words(of command: String) -> [String] {
    var words: [String] = []
    var word: String?
    var quote: Character?
    for character in command {
      if let mark = quote {
        if character == mark { quote = nil } else { word?.append(character) }
      } else if character == "\"" || character == "'" {
        quote = character
        word = word ?? ""
      } else if character == " " || character == "\t" {
        if let ended = word { words.append(ended) }
        word = nil
      } else {
        word = (word ?? "") + String(character)
      }
    }
    return words + (word.map { [$0] } ?? [])
  }
}
