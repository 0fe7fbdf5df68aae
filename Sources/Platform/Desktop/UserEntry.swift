import Glibc

/// A user's entry in the machine's database (passwd(5)).
package struct UserEntry: Sendable, Equatable {
  package let name: String
  package let home: String

  /// The user whose rights this process has.
  package static var identifier: UInt32 { geteuid() }

  /// The entry of this process's user, or `nil` if it is missing. A static program cannot call getpwuid(3), which loads
  /// libraries, so this reads `/etc/passwd`; `elsewhere` also asks getent(1) for users of a network directory.
  package static func current(elsewhere: Bool) -> UserEntry? {
    let file = (try? File.read("/etc/passwd", limit: 16 << 20)) ?? []
    if let entry = entry(of: identifier, in: file) { return entry }
    guard elsewhere,
      let answer = try? Launcher.run("getent", ["passwd", "\(identifier)"], timeout: .seconds(5), errors: .silenced),
      answer.status == 0
    else { return nil }
    return entry(of: identifier, in: answer.output)
  }

  /// The user's first entry with a home directory.
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
