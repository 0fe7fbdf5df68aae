package struct AccountID: Sendable, Equatable {
  package let provider: String
  /// The account's name; `nil` for a login that does not know yet whose it is.
  package let name: String?

  package init(_ provider: String, _ name: String? = nil) {
    self.provider = provider
    self.name = name
  }
}
