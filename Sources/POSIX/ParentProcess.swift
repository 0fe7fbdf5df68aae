import Glibc

/// The process that started this one.
public enum ParentProcess {
  /// The first 15 bytes of its program's name (proc(5), `comm`), as it says itself; nil where the system does not tell.
  public static var name: String? {
    guard let bytes = try? File.read("/proc/\(getppid())/comm", limit: 64) else { return nil }
    let name = String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    return name.isEmpty ? nil : name
  }
}
