// swift-tools-version: 6.2
import PackageDescription

// A package of its own: nobody who builds or tests credmgr builds this. `script/bench` does.
let package = Package(
  name: "Benchmarks",
  dependencies: [.package(name: "credmgr", path: "..")],
  targets: [
    .executableTarget(
      name: "credmgr-bench",
      dependencies: [.product(name: "CredentialManager", package: "credmgr")],
      swiftSettings: [
        .swiftLanguageMode(.v6), .strictMemorySafety(), .treatAllWarnings(as: .error),
      ])
  ]
)
