import Cryptography
import Testing

@testable import Vault

@Suite("Altered bytes")
struct ByteFlipTests {
  /// Every byte of the file that is not zero and every eleventh of the others (which are all unused space):
  /// altered on its own, each is found out when the vault is opened or verified, and no record ever comes
  /// back with another content.
  ///
  /// The test is cut into parts that run at the same time.
  @Test("each one is found out", arguments: 0..<4, [0x01, 0x80, 0xff] as [UInt8])
  func flips(_ part: Int, _ mask: UInt8) throws {
    let temporary = try TemporaryVault()
    let vault = try temporary.open()
    var expected: [RecordIdentifier: String] = [:]
    for number in 0..<12 {
      let identifier = RecordIdentifier.credential("p\(number % 3)", "a\(number)")
      try vault.store(Secret(String(repeating: "\(number)", count: 80 * number)), as: identifier)
      expected[identifier] = String(repeating: "\(number)", count: 80 * number)
    }
    for number in [1, 4, 10] {
      let identifier = RecordIdentifier.credential("p\(number % 3)", "a\(number)")
      try vault.remove(identifier)
      expected[identifier] = nil
    }
    #expect(try vault.verify() == [])
    let file = TemporaryVault.read(temporary.location.file)
    let copy = try TemporaryVault()
    TemporaryVault.write(copy.location.keyFile, TemporaryVault.read(temporary.location.keyFile))
    var tried = 0
    for offset in file.indices where offset % 4 == part && (file[offset] != 0 || offset % 11 == 0) {
      // The three masks share the work.
      guard (offset / 4) % 3 == [0x01: 0, 0x80: 1][mask] ?? 2 else { continue }
      var altered = file
      altered[offset] ^= mask
      TemporaryVault.write(copy.location.file, altered)
      #expect(!(try isAccepted(copy, expected)), "offset \(offset), mask \(mask)")
      tried += 1
    }
    #expect(tried > 200)
  }

  private func isAccepted(
    _ temporary: TemporaryVault, _ expected: [RecordIdentifier: String]
  ) throws -> Bool {
    do throws(VaultError) {
      let vault = try temporary.open(.readOnly, busyTimeout: 0)
      let findings = try vault.verify()
      for (identifier, content) in expected {
        do throws(VaultError) {
          if let record = try vault.record(identifier) {
            #expect(record.payload.reveal() == content)
          }
        } catch {
          #expect(!findings.isEmpty)
        }
      }
      return findings.isEmpty
    } catch {
      return false
    }
  }
}
