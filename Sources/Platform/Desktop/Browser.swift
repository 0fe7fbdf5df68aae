import CredmgrText

package enum Browser {
  /// Shows a URL in the first browser that accepts it: the commands in `BROWSER`, separated by colons, then `xdg-open`,
  /// then `wslview`, which uses the browser of Windows. They do not inherit variables that begin with `CREDMGR_`.
  ///
  /// In a command `%s` stands for the URL and `%%` for a percent sign; without `%s` the URL is the last argument.
  /// Blanks separate words, and quotes of either kind hold a word together. A command may start a shell, so credmgr
  /// first makes the URL harmless.
  ///
  /// - Parameter patience: the time in which a command may fail before it counts as running.
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
        // The command is missing or not executable.
        continue
      }
    }
    return .failed
  }

  package enum Opening: Sendable {
    case done
    /// The command may be the browser itself, or may fail later.
    case running(String, Launcher.Launched)
    case failed

    package var isOpen: Bool { if case .failed = self { false } else { true } }
  }

  /// The commands to try, in order, each with its file, or `nil` if the file is missing.
  package static func candidates(
    environment: [String: String] = Environment.all()
  ) -> [(command: String, file: String?)] {
    commands("", browser: environment["BROWSER"] ?? "").map { words in
      (words[0], try? Launcher.find(words[0], path: environment["PATH"]))
    }
  }

  static func commands(_ url: String, browser: String) -> [[String]] {
    // The browser would read a leading dash as an option.
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
