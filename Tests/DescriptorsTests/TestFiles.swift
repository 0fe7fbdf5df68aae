import Glibc
import CredmgrDescriptors
import CredmgrYAML
import Testing

/// Descriptors that exist only in a test, in directories `0`, `1`, …
struct MemoryLibrary {
  let library: DescriptorLibrary

  init(_ folders: [String: String]...) {
    var files: [String: [UInt8]] = [:]
    for (index, folder) in folders.enumerated() {
      for (name, text) in folder { files["\(index)/\(name).yaml"] = Array(text.utf8) }
    }
    let content = files
    library = DescriptorLibrary(directories: folders.indices.map(String.init)) { content[$0] }
  }
}

/// Loads a descriptor from a text.
func descriptor(_ text: String, named name: String = "sample.yaml") throws -> Descriptor {
  try DescriptorLibrary(directories: []) { _ in nil }.load(Array(text.utf8), name: name).descriptor
}

/// The required keys of a descriptor, for tests of other keys.
let sampleHead = "provider: sample\ngrant: client_credentials\nendpoints: {token: https://a.example/token}\n"

/// The files of this package.
enum PackageFiles {
  static let root: String = {
    // Tests/ProvidersTests/TestFiles.swift
    #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined()
  }()

  static var providers: String { root + "/providers" }

  static func read(_ path: String) -> [UInt8]? {
    guard let file = unsafe fopen(path, "r") else { return nil }
    defer { unsafe fclose(file) }
    var bytes: [UInt8] = []
    while true {
      let byte = unsafe getc(file)
      if byte == EOF { return bytes }
      bytes.append(UInt8(byte))
    }
  }

  /// The identifiers of the shipped descriptors.
  static var shipped: [String] {
    guard let folder = unsafe opendir(providers) else { return [] }
    defer { unsafe closedir(folder) }
    var names: [String] = []
    while let entry = unsafe readdir(folder) {
      let name = unsafe withUnsafeBytes(of: entry.pointee.d_name) { buffer in
        unsafe String(decoding: buffer.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name.hasSuffix(".yaml") { names.append(String(name.dropLast(5))) }
    }
    return names.sorted()
  }

  static var shippedLibrary: DescriptorLibrary { DescriptorLibrary(directories: [providers]) { read($0) } }
}

/// Files of this package that tests generate. `CREDMGR_RECORD=1` writes them and fails.
enum GeneratedFile {
  static func compare(_ path: String, _ text: String) {
    let path = PackageFiles.root + path
    let isThere = PackageFiles.read(path).map { String(decoding: $0, as: UTF8.self) == text } ?? false
    let records = unsafe getenv("CREDMGR_RECORD") != nil
    if !isThere, records {
      guard let file = unsafe fopen(path, "w") else { return }
      for byte in text.utf8 { unsafe putc(Int32(byte), file) }
      unsafe fclose(file)
    }
    #expect(isThere, "\(path) is out of date: run the tests with CREDMGR_RECORD=1")
  }
}
