import CredmgrCryptography
import CredmgrPlatform
import CredmgrSQLite
import CredmgrStore
import Testing

@testable import CredmgrVault

@Suite("Altered bytes") struct ByteFlipTests {
  private static let parts = 8
  private static let isSiege = Environment.value("CREDMGR_KILLS") != nil
  private let temporary: TemporaryVault
  private let image: [UInt8]
  private var contents: [RecordIdentifier: String] = [:]
  private let names: [RecordIdentifier]
  private let secret: Secret
  private let removed = RecordIdentifier.credential("p1", "removed")

  init() throws {
    temporary = try TemporaryVault()
    let vault = try temporary.open()
    names = (0..<4).map { .credential("p\($0 % 2)", "a\($0)") }
    for (number, name) in names.enumerated() {
      contents[name] = String(repeating: "\(number)", count: 80 + 600 * number)
    }
    try vault.apply(contents.map { .store(Secret($1), as: $0) } + [.store(Secret("gone"), as: removed)])
    try vault.remove(removed)
    #expect(try vault.verify() == [])
    image = try vault.image()
    secret = vault.openedKeys.keys
  }

  /// Each record is unchanged, causes an error, or is reported as lost, even after storing another record.
  @Test("an altered byte never changes a result", arguments: 0..<parts) func answers(_ part: Int) throws {
    for offset in stride(from: part, to: image.count, by: Self.parts) {
      let isEmptySpace = image[offset] == 0 && offset % Format.pageSize >= 128
      // Every byte of a page's header, and a sample of the others. `script/siege` alters every byte.
      let step = offset % Format.pageSize < 128 ? 1 : isEmptySpace ? 13 : 3
      if offset % step != 0 && !Self.isSiege { continue }
      var altered = image
      altered[offset] ^= [0x01, 0x80, 0xff, 0x10][offset / Self.parts % 4]
      guard let vault = try? open(altered) else { continue }
      let isWhole = hasRightAnswers(vault, contents, offset)
      if !isWhole { #expect((try? vault.verify()) != [], "offset \(offset)") }
      // Skips empty space after a page's header, which affects no change.
      if isEmptySpace { continue }
      let name = names[offset / Self.parts % names.count]
      guard (try? vault.store(Secret("new"), as: name)) != nil else { continue }
      var expected = contents
      expected[name] = "new"
      _ = hasRightAnswers(vault, expected, offset)
    }
  }

  /// Opens a writable vault in memory.
  private func open(_ image: [UInt8]) throws -> Vault {
    let secret = secret
    let file = try VaultFile(image: image, of: temporary.location)
    let opening = try VaultOpening(file, [.opened { _ in secret }, .keyFile])
    return try Vault(file, .readWrite, random: SystemRandomSource(), opening: opening)
  }

  /// - Returns: whether all records exist.
  private func hasRightAnswers(_ vault: Vault, _ expected: [RecordIdentifier: String], _ offset: Int) -> Bool {
    var isWhole = true
    for (name, content) in expected {
      do {
        if let record = try vault.record(name) {
          #expect(record.payload.reveal() == content, "offset \(offset)")
        } else {
          isWhole = false
          // A missing record must be reported as lost.
          #expect(try vault.isLost(name), "offset \(offset)")
        }
      } catch {
        isWhole = false
      }
    }
    #expect((try? vault.record(removed)) == nil, "offset \(offset)")
    guard let all = try? vault.records(.credential, provider: nil) else { return false }
    for record in all { #expect(expected[record.identifier] == record.payload.reveal(), "offset \(offset)") }
    return isWhole && all.count == expected.count
  }
}
