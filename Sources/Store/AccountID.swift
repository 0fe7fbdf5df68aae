/// One account at one provider.
public struct AccountID: Sendable, Equatable {
  /// The provider's identifier.
  public let provider: String
  /// The account's name; `nil` for a login that does not know yet whose it is.
  public let name: String?

  /// An account of a provider.
  public init(_ provider: String, _ name: String? = nil) {
    self.provider = provider
    self.name = name
  }
}
