// swift-tools-version: 6.2
import PackageDescription

/// Another package that uses the library of this one.
let package = Package(
  name: "Examples",
  dependencies: [.package(name: "credmgr", path: "..")],
  targets: [
    .executableTarget(
      name: "repositories", dependencies: [.product(name: "Credmgr", package: "credmgr")],
      swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)])
  ]
)
