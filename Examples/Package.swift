// swift-tools-version: 6.2
import PackageDescription

/// A package that uses the library of the package above.
let package = Package(
  name: "Examples",
  dependencies: [.package(name: "credmgr", path: "..")],
  targets: ["gateway", "repositories"].map { name in
    .executableTarget(
      name: name, dependencies: [.product(name: "Credmgr", package: "credmgr")],
      swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)])
  }
)
