import CredmgrHTTP
import CredmgrPlatform
import CredmgrText

/// Receives the redirect to an app's scheme (RFC 8252, 7.1) during one login. A temporary desktop entry passes the
/// redirect to this process. The previous application stays registered after ours. The next login that uses a scheme
/// removes the entry of a killed process.
struct SchemeHandler: ~Copyable {
  struct Desktop: Sendable, Equatable {
    let entries: String
    let choices: String  // The path of `mimeapps.list`.

    /// Returns the directories with the choices of the user, of applications and of the system (XDG base directory
    /// specification).
    func folders(_ environment: (String) -> String? = { Environment.value($0) }) -> [String] {
      func list(_ name: String, _ standard: String) -> [String] {
        (Environment.text(name, environment) ?? standard).split(separator: ":").map(String.init)
      }
      return [Path.directory(of: choices) ?? "/", entries] + list("XDG_CONFIG_DIRS", "/etc/xdg")
        + list("XDG_DATA_DIRS", "/usr/local/share:/usr/share").map { $0 + "/applications" }
    }
  }

  private static let prefix = "credmgr-login-"
  private static let suffix = ".redirect"
  private static let handled = "x-scheme-handler/"

  private let desktop: Desktop
  private let entry: String
  private let before: String?
  private let during: String
  private var inbox: LineInbox

  /// Common schemes that credmgr must not claim, because a link opened during a login would end up here.
  private static let common = Set(
    """
    about apt blob data dav davs ed2k feed file ftp ftps geo git http https imap irc ircs javascript ldap magnet \
    mailto man mms news nfs nntp rtsp sftp sip sips sms smb ssh tel telnet trash urn view-source webcal webdav ws wss \
    x-scheme-handler xmpp
    """.split(separator: " ").map(String.init))

  static func scheme(of redirect: String) -> String? {
    guard let colon = redirect.firstIndex(of: ":") else { return nil }
    let scheme = redirect[..<colon].lowercased()
    let isScheme = scheme.utf8.allSatisfy {
      (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || "+-.".utf8.contains($0)
    }
    return isScheme && scheme.first?.isLetter == true && !common.contains(scheme) ? scheme : nil
  }

  /// Returns another application's desktop entry for a scheme; `nil` if no application has the scheme.
  static func owner(of scheme: String, in folders: [String]) -> String? {
    let type = handled + scheme
    func others(in folder: String, _ name: String) -> [String] {
      let isEntry = name.hasSuffix(".desktop")
      guard isEntry || ["mimeapps.list", "mimeinfo.cache", "defaults.list"].contains(where: name.hasSuffix),
        let text = try? read(folder + "/" + name)
      else { return [] }
      let list = MIMEApplications(text)
      if isEntry { return list.entries(for: "MimeType").contains(type) ? [name] : [] }
      return list.entries(for: type)
    }
    return folders.lazy.flatMap { folder in
      ((try? File.names(in: folder)) ?? []).sorted().flatMap { others(in: folder, $0) }
    }.first { !$0.isEmpty && !$0.hasPrefix(prefix) }
  }

  /// Registers a lowercase scheme, or throws and registers nothing. Both processes use the directory `runtime`.
  init(_ scheme: String, executable: String, runtime: String, desktop: Desktop) throws(POSIXError) {
    try PrivateFile.createDirectory(runtime)
    try File.createDirectory(desktop.entries)
    if let folder = Path.directory(of: desktop.choices) { try File.createDirectory(folder) }
    try Self.removeDead(runtime, desktop)
    let name = String(UInt64.random(in: 0 ... .max), radix: 36)
    let inbox = try LineInbox(runtime + "/" + name + Self.suffix)
    let entry = Self.prefix + name + ".desktop"
    let type = Self.handled + scheme
    let command = [executable, "redirect", runtime].map(Self.quoted).joined(separator: " ")
    let before = try Self.read(desktop.choices)
    var choices = MIMEApplications(before ?? "")
    choices.prefer(entry, for: type)
    let text = """
      [Desktop Entry]
      Type=Application
      Name=credmgr
      Comment=Receives the answer of a login
      Exec=\(command) %u
      Terminal=false
      NoDisplay=true
      MimeType=\(type);

      """
    try File.replace(desktop.entries + "/" + entry, Array(text.utf8))
    do throws(POSIXError) {
      try Self.write(choices.text, desktop.choices)
    } catch {
      _ = try? File.remove(desktop.entries + "/" + entry)
      throw error
    }
    self.desktop = desktop
    self.entry = entry
    self.before = before
    during = choices.text
    self.inbox = inbox
  }

  deinit {
    _ = try? File.remove(desktop.entries + "/" + entry)
    // Keep a change made by another program meanwhile.
    guard let now = try? Self.read(desktop.choices) else { return }
    if now == during {
      if let before { try? Self.write(before, desktop.choices) } else { _ = try? File.remove(desktop.choices) }
    } else {
      try? Self.forgetMissing(desktop)
    }
  }

  mutating func line(
    within time: Duration, alsoReading descriptor: Int32?, isCancelled: () -> Bool
  ) throws(POSIXError) -> LineInbox.Line {
    try inbox.line(within: time, alsoReading: descriptor, isCancelled: isCancelled)
  }

  /// Passes a redirect to all waiting logins, which recognize theirs by its state. Returns false if none waits.
  static func hand(_ address: String, runtime: String) -> Bool {
    guard !address.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else { return false }
    let names = ((try? File.names(in: runtime)) ?? []).filter { $0.hasSuffix(suffix) }
    return !names.filter { LineInbox.hand(address, to: runtime + "/" + $0) }.isEmpty
  }

  static func removeDead(_ runtime: String, _ desktop: Desktop) throws(POSIXError) {
    for dead in try dead(runtime, desktop) {
      try File.remove(desktop.entries + "/" + dead.entry)
      try File.remove(dead.inbox)
    }
    try forgetMissing(desktop)
  }

  /// Returns the entries of killed logins with their inboxes and schemes.
  static func dead(
    _ runtime: String, _ desktop: Desktop
  ) throws(POSIXError) -> [(entry: String, inbox: String, schemes: [String])] {
    var found: [(entry: String, inbox: String, schemes: [String])] = []
    for entry in try File.names(in: desktop.entries) where entry.hasPrefix(prefix) && entry.hasSuffix(".desktop") {
      let inbox = runtime + "/" + entry.dropFirst(prefix.count).dropLast(".desktop".count) + suffix
      // Skip entries of logins with another home.
      let lines = try read(desktop.entries + "/" + entry)?.split(separator: "\n") ?? []
      guard lines.contains(where: { $0.hasSuffix(" redirect \(quoted(runtime)) %u") }), !LineInbox.isAwaited(inbox)
      else { continue }
      let types = lines.first { $0.hasPrefix("MimeType=") }?.dropFirst("MimeType=".count).split(separator: ";") ?? []
      let schemes = types.filter { $0.hasPrefix(handled) }.map { String($0.dropFirst(handled.count)) }
      found.append((entry, inbox, schemes))
    }
    return found
  }

  private static func forgetMissing(_ desktop: Desktop) throws(POSIXError) {
    guard let text = try read(desktop.choices) else { return }
    let there = Set(try File.names(in: desktop.entries))
    var choices = MIMEApplications(text)
    choices.forget { $0.hasPrefix(prefix) && !there.contains($0) }
    if choices.text != text { try write(choices.text, desktop.choices) }
  }

  private static func read(_ path: String) throws(POSIXError) -> String? {
    do throws(POSIXError) {
      let bytes = try File.read(path, limit: 1 << 20)
      guard let text = String(validating: bytes, as: UTF8.self) else { throw .notText(path: path) }
      return text
    } catch {
      if case .notFound = error { return nil }
      throw error
    }
  }

  /// Write to the target of a symbolic link, for example in a dotfiles repository.
  private static func write(_ text: String, _ path: String) throws(POSIXError) {
    try File.replace(Path.resolved(path) ?? path, Array(text.utf8))
  }

  /// Quotes an argument of `Exec` (Desktop Entry Specification) only if needed: some readers do not support quotes.
  static func quoted(_ argument: String) -> String {
    let argument = argument.map { $0 == "%" ? "%%" : String($0) }.joined()
    let isPlain = argument.utf8.allSatisfy { byte in
      (0x61...0x7A).contains(byte | 0x20) || (0x30...0x39).contains(byte) || "/._-+:@%".utf8.contains(byte)
        || byte >= 0x80
    }
    if isPlain { return argument }
    var text = ""
    for character in argument {
      // The key's value is a string, which doubles each backslash.
      switch character {
      case "\"", "`", "$": text += "\\\\" + String(character)
      case "\\": text += "\\\\\\\\"
      default: text.append(character)
      }
    }
    return "\"" + text + "\""
  }
}

extension CredentialSource {
  package func deadLogins() -> [(entry: String, schemes: [String])] {
    guard let desktop = home.desktop else { return [] }
    let left = (try? SchemeHandler.dead(home.runtime, desktop)) ?? []
    return left.map { (desktop.entries + "/" + $0.entry, $0.schemes) }
  }

  /// Passes a browser's address to the waiting logins. If none waits, removes the entry, because its login was killed.
  package func handOver(redirect address: String, runtime: String) -> Bool {
    if SchemeHandler.hand(address, runtime: runtime) { return true }
    if let desktop = home.desktop { try? SchemeHandler.removeDead(runtime, desktop) }
    return false
  }
}
