import Glibc

/// Arguments or an environment as C wants them: pointers to texts that end in a zero, and nil at the end.
@safe struct CStringList: ~Copyable {
  /// Valid while the list is.
  let base: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
  private let count: Int

  /// - Throws: `system` with EINVAL if a text holds a zero, which would cut it off.
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
