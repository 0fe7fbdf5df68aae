import CredmgrCryptography
import CredmgrPlatform
import CredmgrStore

/// The log: sealed lines in a file next to the vault, each bound to the preceding bytes. Logging an event does not wait
/// for changes of the vault or for the disk.
struct EventLog {
  /// The size at which the file becomes the older one: several thousand events.
  static let limit = 1 << 20
  static let eventLimit = 2048
  /// The number of preceding bytes that a line is bound to: most of the previous line's tag.
  private static let linkByteCount = 16

  let path: String

  init(_ location: VaultLocation) { path = location.directory + "/vault.log" }

  struct Line {
    fileprivate let bytes: ArraySlice<UInt8>
    /// The event, or `nil` if the line is incomplete or was sealed by another program or with another vault key.
    let event: Secret?
    /// `false` if another line preceded this one when it was written.
    let isLinked: Bool

    var isFault: Bool { event == nil || !isLinked }
  }

  func append(_ event: Secret, _ keys: VaultKeys, random: some RandomSource) throws(VaultError) {
    let file = try wrapping(
      VaultError.file, LogFile.open(path, limit: Self.limit, tail: Self.linkByteCount + 1))
    // An incomplete line must not damage the next one.
    let isAtBeginning = file.tail.last ?? Self.end == Self.end
    let line = try Self.line(event, link: Self.link(to: file.tail[...]), keys, random: random)
    try wrapping(VaultError.file, file.append((isAtBeginning ? [] : [Self.end]) + line))
  }

  /// The lines, the oldest first, without one that is still being written.
  func lines(_ keys: VaultKeys) throws(VaultError) -> [Line] {
    let content = try wrapping(VaultError.file, LogFile.read(path))
    let bytes = content.older + content.current
    var lines: [Line] = []
    // The text before the older file no longer exists.
    var isKnown = content.older.isEmpty
    var start = 0
    while let end = bytes[start...].firstIndex(of: Self.end) {
      let line = bytes[start..<end]
      let opened = Base64.decodeURL(String(decoding: line, as: UTF8.self))
        .flatMap { keys.records.opened($0, Format.associatedData(.event)) }
      if let opened, opened.count >= Self.linkByteCount {
        let link = Self.link(to: bytes[max(0, start - Self.linkByteCount - 1)..<start])
        let isLinked = !isKnown || opened[0..<Self.linkByteCount].revealBytes() == link
        lines.append(Line(bytes: line, event: opened[Self.linkByteCount..<opened.count], isLinked: isLinked))
        isKnown = true
      } else {
        lines.append(Line(bytes: line, event: nil, isLinked: true))
        isKnown = false
      }
      start = end + 1
    }
    return lines
  }

  /// Seals all events with other keys. Unreadable lines stay as they are, and gaps remain gaps.
  func reseal(_ old: VaultKeys, _ new: VaultKeys, random: some RandomSource) throws(VaultError) {
    let file = try wrapping(VaultError.file, LogFile.open(path, limit: .max, tail: 0))
    var bytes: [UInt8] = []
    for line in try lines(old) {
      guard let event = line.event else {
        bytes += line.bytes + [Self.end]
        continue
      }
      let link = line.isLinked ? Self.link(to: bytes[...]) : Array(repeating: 0xff, count: Self.linkByteCount)
      bytes += try Self.line(event, link: link, new, random: random)
    }
    try wrapping(VaultError.file, file.replace(with: bytes))
  }

  /// Moves a log away if these keys open none of its lines.
  func setAside(unlessOpenedBy keys: VaultKeys) {
    guard let lines = try? lines(keys), !lines.isEmpty, lines.allSatisfy({ $0.event == nil }),
      let content = try? LogFile.read(path),
      (try? PrivateFile.replace(path + ".replaced", content.older + content.current)) != nil
    else { return }
    for name in [path + ".1", path] { _ = try? File.remove(name) }
  }

  private static let end = UInt8(ascii: "\n")

  private static func line(
    _ event: Secret, link: [UInt8], _ keys: VaultKeys, random: some RandomSource
  ) throws(VaultError) -> [UInt8] {
    let sealed = try keys.records.sealed(Secret(link, event), Format.associatedData(.event), random: random)
    return Array(Base64.encodeURL(sealed).utf8) + [end]
  }

  /// The last bytes before a line, without the line feed that ends them.
  private static func link(to bytes: ArraySlice<UInt8>) -> [UInt8] {
    let bytes = (bytes.last == end ? bytes.dropLast() : bytes).suffix(linkByteCount)
    return Array(repeating: 0, count: linkByteCount - bytes.count) + bytes
  }
}

extension Vault {
  /// Logs an event within microseconds, unless it exceeds 2048 bytes.
  package func note(_ event: Secret) throws(VaultError) {
    guard event.count <= EventLog.eventLimit else { return }
    try EventLog(location).append(event, opening.keys, random: random)
  }

  /// The events and the number of known losses. Throws `.file` if another kind of file replaces the log.
  package func events() throws(VaultError) -> (events: [Secret], lost: Int) {
    try transaction(.deferred) { keys throws(VaultError) in
      let lines = try EventLog(location).lines(keys)
      return (try earlierEvents() + lines.compactMap(\.event), lines.count(where: \.isFault))
    }
  }

  /// The events that earlier versions stored in records of up to 64 events:
  /// `i64(number of the first event) ‖ u8(n) ‖ n bytes`, and then `u16(length) ‖ event` for each event.
  private func earlierEvents() throws(VaultError) -> [Secret] {
    var pages: [(series: String, first: Int64, events: [Secret])] = []
    for record in try records(.event, provider: nil) {
      var fields = BinaryReader(record.payload.revealBytes())
      guard let first = fields.number64(), let count = fields.byte(), fields.raw(Int(count)) != nil else { continue }
      var events: [Secret] = []
      while let count = fields.number16(), let event = fields.raw(Int(count)) { events.append(Secret(bytes: event)) }
      pages.append((record.identifier.provider, first, events))
    }
    return pages.sorted { ($0.series, $0.first) < ($1.series, $1.first) }.flatMap(\.events)
  }
}
