import Glibc

/// Arguments or an environment for C: pointers to zero-terminated texts, with a null pointer at the end.
@safe struct CStringList: ~Copyable {
  /// The pointers, valid as long as the list.
  let base: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
  private let count: Int

  /// - Throws: `system` with EINVAL if a text contains a zero, which would truncate it.
  init(_ texts: [String]) throws(POSIXError) { try self.init(bytes: texts.map { Array($0.utf8) }) }

  init(bytes texts: [[UInt8]]) throws(POSIXError) {
    if texts.contains(where: { $0.contains(0) }) {
      throw .system(call: "execve", path: nil, code: EINVAL)
    }
    count = texts.count
    unsafe base = .allocate(capacity: texts.count + 1)
    unsafe base.initialize(repeating: nil, count: texts.count + 1)
    for (index, text) in texts.enumerated() {
      let terminated = text.map { CChar(bitPattern: $0) } + [0]
      unsafe base[index] = strdup(terminated)
    }
  }

  init(environment: [String: String]) throws(POSIXError) {
    try self.init(environment.map { "\($0.key)=\($0.value)" }.sorted())
  }

  deinit {
    for index in 0..<count { unsafe free(base[index]) }
    unsafe base.deallocate()
  }
}
