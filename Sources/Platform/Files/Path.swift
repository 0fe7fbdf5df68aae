import CredmgrCPOSIX
import Glibc

package enum Path {
  /// `child` in `folder`; an absolute `child` stays as it is.
  package static func joining(_ folder: String, _ child: String) -> String {
    if child.hasPrefix("/") || folder.isEmpty { return child }
    return folder.hasSuffix("/") ? folder + child : "\(folder)/\(child)"
  }

  /// The directory of a path, or `nil` for `/`, the empty path and a bare name.
  package static func directory(of path: String) -> String? {
    let bytes = Array(path.utf8)
    let slash = UInt8(ascii: "/")
    guard let end = bytes.lastIndex(where: { $0 != slash }),
      let separator = bytes[...end].lastIndex(of: slash)
    else { return nil }
    guard let last = bytes[...separator].lastIndex(where: { $0 != slash }) else { return "/" }
    return String(decoding: bytes[...last], as: UTF8.self)
  }

  /// The parent directories of a path, the nearest first.
  static func ancestors(of path: String) -> some Sequence<String> {
    sequence(first: path) { directory(of: $0) }.dropFirst()
  }

  package static func lastComponent(of path: String) -> String {
    let (bytes, slash) = (path.utf8, UInt8(ascii: "/"))
    guard let last = bytes.lastIndex(where: { $0 != slash }) else { return path }
    let start = bytes[...last].lastIndex(of: slash).map { bytes.index(after: $0) } ?? bytes.startIndex
    return String(decoding: Array(bytes[start...last]), as: UTF8.self)
  }

  package static func currentDirectory() throws(POSIXError) -> String {
    guard let text = unsafe getcwd(nil, 0) else { throw Descriptor.failure("getcwd", nil) }
    defer { unsafe free(text) }
    return unsafe String(cString: text)
  }

  /// The path without symbolic links (realpath(3)), or `nil` if the file does not exist.
  package static func resolved(_ path: String) -> String? {
    guard let text = unsafe realpath(path, nil) else { return nil }
    defer { unsafe free(text) }
    return unsafe String(cString: text)
  }

  /// The file of the running program (proc(5)), or without /proc the file named when it was started.
  package static func executable() throws(POSIXError) -> String {
    do throws(POSIXError) { return try target(ofLink: "/proc/self/exe") } catch {
      guard let name = unsafe credmgr_started_file(), let path = resolved(unsafe String(cString: name)) else {
        throw error
      }
      return path
    }
  }

  /// The target of a symbolic link (readlink(2)).
  static func target(ofLink path: String) throws(POSIXError) -> String {
    var text = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = unsafe readlink(path, &text, text.count)
    if count < 0 { throw Descriptor.failure("readlink", path) }
    return String(decoding: text[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
