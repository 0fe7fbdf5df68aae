import Testing

/// Runs the tests of Swift Testing. SwiftPM would write the same and a search for tests of XCTest, which needs an index
/// of all symbols and therefore a sixth more time for each build.
@main struct Runner {
  static func main() async { await Testing.__swiftPMEntryPoint() as Never }
}
