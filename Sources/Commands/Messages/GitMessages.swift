import Platform
import Text

/// Why git did not change its configuration, in its own words.
struct GitRefusal: Sendable, Equatable {
  private let words: String
  private let status: Int32
  /// The file that git names; `nil` where it names none.
  private let file: String?
  /// What a person runs who may change that file; `nil` where it is the person's own.
  private let asAdministrator: [String]?

  /// - Parameters:
  ///   - said: what git wrote on standard error, in English.
  ///   - status: its exit status.
  ///   - asAdministrator: the command for somebody who may change the file; `nil` where it is the person's own.
  init(said: String, status: Int32, asAdministrator: [String]?) {
    let lines = said.split(separator: "\n").map(Self.plain)
    // The first line names the file; behind it comes what follows from that.
    words = lines.first ?? ""
    file = lines.lazy.compactMap(Self.file).first
    self.status = status
    self.asAdministrator = asAdministrator
  }

  private static func plain(_ line: Substring) -> String {
    for mark in ["fatal: ", "error: ", "warning: "] where line.hasPrefix(mark) {
      return String(line.dropFirst(mark.count))
    }
    return String(line)
  }

  private static func file(_ line: String) -> String? {
    for (head, tail) in [
      ("could not lock config file ", ": "), ("failed to write new configuration file ", ".lock"),
      ("unable to access '", "'"),
    ] {
      guard let place = line.firstPlace(of: head) else { continue }
      let rest = String(line[place.upperBound...])
      return rest.firstPlace(of: tail).map { String(rest[..<$0.lowerBound]) } ?? rest
    }
    return nil
  }

  /// What a person is told.
  var message: Message {
    let said = words.isEmpty ? "it ended with the status \(status)" : words
    let isFull = said.firstPlace(of: "No space left") != nil || said.firstPlace(of: "failed to write") != nil
    return Message(
      "git did not change its configuration: \(said)", hints: isFull ? [room] : hints,
      status: isFull || file == nil ? .unexpected : .usage)
  }

  private var room: Remedy { POSIXError.makingRoom(folder) }

  private var folder: String { file.flatMap(Path.directory) ?? "." }

  private var hints: [Remedy] {
    guard let file else { return [.seeingGitConfiguration] }
    let isFromVariable = Environment.value("GIT_CONFIG_GLOBAL") == file
    let without: [Remedy] = isFromVariable ? ["\(run: "unset", "GIT_CONFIG_GLOBAL") to do without that file"] : []
    if File.isDirectory(file) { return [.settingAside(file)] }
    if File.isLink(file), !File.exists(file) { return ["\(run: "rm", file), which leads nowhere"] }
    if !File.isDirectory(folder), !File.exists(folder) { return ["\(run: "mkdir", "-p", folder)"] + without }
    if File.exists(file + ".lock") {
      return ["if no other git is at work, \(run: "rm", file + ".lock")"]
    }
    if File.isOnReadOnlyFileSystem(folder) { return [POSIXError.seeingMount(folder)] + without }
    if let place = File.closedPlace(file) { return ["\(run: "chmod", "u+rwX", place)"] + without }
    if let asAdministrator { return ["\(run: ["sudo"] + asAdministrator)"] }
    if !without.isEmpty { return without }
    return [changingOwner(file) ?? "\(credmgr: "git-setup", "--local") in each repository"]
  }

  /// Gives the person what is in the person's own home.
  private func changingOwner(_ file: String) -> Remedy? {
    guard let home = Environment.value("HOME"), file.hasPrefix(home + "/") else { return nil }
    guard File.isOwn(home) == true else {
      return UserEntry.current(elsewhere: true).map { "\(export: "HOME", $0.home)" }
    }
    let place = File.isOwn(folder) == true ? file : folder
    return "\(run: "sudo", "chown", "-R", UserEntry.ownName, place)"
  }
}
