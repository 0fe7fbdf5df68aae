import Glibc

/// What the machine knows of a user (passwd(5)).
package struct UserEntry: Sendable, Equatable {
  package let name: String
  package let home: String

  /// The user whose rights this process has.
  package static var identifier: UInt32 { geteuid() }

  /// The entry of this process's user; `nil` where there is none. getpwuid(3) loads libraries, which a static program
  /// cannot, so `/etc/passwd` is read; `elsewhere` asks getent(1) for a user of a directory in the network, too.
  package static func current(elsewhere: Bool) -> UserEntry? {
    let file = (try? File.read("/etc/passwd", limit: 16 << 20)) ?? []
    if let entry = entry(of: identifier, in: file) { return entry }
    guard elsewhere,
      let answer = try? Launcher.run("getent", ["passwd", "\(identifier)"], timeout: .seconds(5), errors: .silenced),
      answer.status == 0
    else { return nil }
    return entry(of: identifier, in: answer.output)
  }

  /// The first entry of a user that has a home.
  static func entry(of identifier: UInt32, in lines: [UInt8]) -> UserEntry? {
    for line in lines.split(separator: UInt8(ascii: "\n")) {
      let fields = line.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
      guard fields.count == 7, fields[2].elementsEqual("\(identifier)".utf8), fields[5].first == UInt8(ascii: "/"),
        let name = String(validating: fields[0], as: UTF8.self), let home = String(validating: fields[5], as: UTF8.self)
      else { continue }
      return UserEntry(name: name, home: home)
    }
    return nil
  }
}
