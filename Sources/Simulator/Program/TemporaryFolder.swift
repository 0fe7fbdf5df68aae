import Cryptography
import Platform

/// A folder that nobody else reads, and that goes away with the value.
struct TemporaryFolder: ~Copyable {
  private let path: String
  private var files: [String] = []

  /// - Throws: `SimulatorError.temporaryFolder`.
  init(_ random: some RandomSource) throws(SimulatorError) {
    let parent = Environment.value("TMPDIR").flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "/tmp"
    path = Path.joining(parent, "credmgr-simulator-" + Hexadecimal.encode(random.bytes(8)))
    do { try PrivateFile.createDirectory(path) } catch { throw .temporaryFolder }
  }

  /// Writes a file, and returns its path.
  ///
  /// - Throws: `SimulatorError.temporaryFolder`.
  mutating func write(_ name: String, _ bytes: [UInt8]) throws(SimulatorError) -> String {
    let file = Path.joining(path, name)
    do { try PrivateFile.create(file, bytes) } catch { throw .temporaryFolder }
    files.append(file)
    return file
  }

  deinit {
    for file in files { _ = try? File.remove(file) }
    removeFolder(path)
  }
}
