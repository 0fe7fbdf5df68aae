// swift-tools-version: 6.2
import PackageDescription

/// Whether another package fetched this one, which then must not set flags (SwiftPM, "unsafeFlags").
let isFetched = ["/checkouts/", "/registry/downloads/"].contains { Context.packageDirectory.contains($0) }

/// Puts each function into a section, so that the linker can remove unused functions and reorder the rest. Without the
/// second option, the linker must keep all public functions.
let sections: [SwiftSetting] = [
  .unsafeFlags(
    ["-Xfrontend", "-function-sections", "-Xfrontend", "-internalize-at-link"], .when(configuration: .release))
]

/// Settings of every target: the Swift 6 language mode, strict memory safety, and warnings as errors.
let strict: [SwiftSetting] =
  [
    .swiftLanguageMode(.v6),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
  ] + (isFetched ? [] : sections)

/// Settings of long targets, which save 0.4 MB in each program.
let compact: [SwiftSetting] = strict + (isFetched ? [] : [.unsafeFlags(["-Osize"], .when(configuration: .release))])

/// Settings of the targets that read text and descriptors: debug builds optimize them, too, so that the tests take less
/// time. For other targets, the optimizer takes longer than the tests save.
func quick(_ settings: [SwiftSetting]) -> [SwiftSetting] {
  settings + (isFetched ? [] : [.unsafeFlags(["-O"], .when(configuration: .debug))])
}

/// Functions of Swift's and C++'s libraries that are left out. A call would end the program.
///
/// The names of all Unicode characters take half a megabyte, and `Unicode.Scalar.Properties.name` links them. The
/// decoder of C++ names takes 0.05 MB. It is for a message about an uncaught exception, which ends the program anyway.
/// The writer of Swift's mangled names takes 0.15 MB. It looks up types whose names are text; the compiler refers to
/// ours and the library's by address.
let unusedOfLibraries: [String] = [
  "_swift_stdlib_getScalarName", "__cxa_demangle",
  "_ZN5swift8Demangle9__runtime10mangleNodeB5cxx11EPNS1_4NodeENS_6Mangle9__runtime14ManglingFlavorE",
  """
  _ZN5swift8Demangle9__runtime10mangleNodeEPNS1_4NodeEN7__swift9__runtime4llvm12function_refIFS3_NS1_21Symbolic\
  ReferenceKindEPKvEEERNS1_11NodeFactoryENS_6Mangle9__runtime14ManglingFlavorE
  """,
]

/// Linker flags of every release program. lld links eight times faster than gold, folds functions with equal code, and
/// does not warn about `dlopen` in a static program, which ours never calls. Swift programs are never unwound, so the
/// tables for that are left out (docs/performance.md).
let small: [String] =
  [
    "-use-ld=lld", "-Xlinker", "--gc-sections", "-Xlinker", "--icf=all", "-Xlinker", "--no-eh-frame-hdr",
    "-Xlinker", "-T", "-Xlinker", Context.packageDirectory + "/Packaging/no-unwinding.ld",
    "-Xlinker", "-T", "-Xlinker", Context.packageDirectory + "/Packaging/read-only.ld",
  ] + unusedOfLibraries.flatMap { replace($0, by: "swift_deletedMethodError") }
  // `script/build-release` makes this copy of Swift's library, from which the linker can remove unused functions.
  + (Context.environment["CREDMGR_SWIFT_LIBRARY"].map { [$0] } ?? [])

/// Linker flags that call `replacement` instead of a library's function, so that nothing refers to that function.
func replace(_ function: String, by replacement: String) -> [String] {
  ["-Xlinker", "--wrap=\(function)", "-Xlinker", "--defsym=__wrap_\(function)=\(replacement)"]
}

/// Leaves out the parts of SQLite that no vault uses: full-text search, R-trees, tables of statistics, statements and
/// JSON, and the functions for JSON, dates and windows. SQLite registers them for each connection or at its start.
/// `sqlite3_errcode` has the same parameter and returns 0 there, which means success. `sqlite3_libversion_number` has
/// no effect, so it can replace a function without a result.
let withoutExtensions: [String] =
  [
    "sqlite3Fts3Init", "sqlite3Fts5Init", "sqlite3RtreeInit", "sqlite3DbstatRegister", "sqlite3StmtVtabInit",
    "sqlite3JsonTableFunctions",
  ].flatMap { replace($0, by: "sqlite3_errcode") }
  + ["sqlite3RegisterJsonFunctions", "sqlite3RegisterDateTimeFunctions", "sqlite3WindowFunctions"].flatMap {
    replace($0, by: "sqlite3_libversion_number")
  }

/// Leaves out the elliptic curve and the stream cipher that no vault uses: 0.1 MB. The start of libsodium chooses an
/// implementation of each, without a parameter, and ignores the result.
let withoutCurves: [String] = ["scalarmult_curve25519", "stream_salsa20"].flatMap {
  replace("_crypto_\($0)_pick_best_implementation", by: "sqlite3_libversion_number")
}

let functionsOfThreeTypes: [String] = [
  "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp",
  "exp2", "exp10", "expm1", "log", "log10", "log1p", "log2", "pow", "hypot", "cbrt", "remquo", "nextafter", "fma",
]

let otherFunctions: [String] = [
  "erff", "erfl", "erfcf", "erfcl", "jn", "yn", "lgamma_r", "lgammaf_r", "lgammal_r", "tgammaf", "tgammal",
  "__isoc99_sscanf", "__gconv_transliterate",
]

/// Leaves out the C library's mathematical functions, which take 0.39 MB in a static program, and its reader of
/// formatted text and its tables for other character sets, which take 0.06 MB each. SQLite and
/// Swift's library refer to them. A call would end the program.
let withoutMathematics: [String] =
  (functionsOfThreeTypes.flatMap { [$0, $0 + "f", $0 + "l"] } + otherFunctions).flatMap {
    replace($0, by: "swift_deletedMethodError")
  }

/// Skips startup work that a token does not need.
let quick = ["-Xlinker", "-T", "-Xlinker", Context.packageDirectory + "/Packaging/no-constructors.ld"]

/// Sanitizers need shared libraries. Otherwise, debug builds link the programs like a release, because tests start them
/// thousands of times.
let isSanitized = Context.environment["CREDMGR_SANITIZED"] != nil

/// The libraries that sign in the static program and in tests
/// (docs/decisions/0076-libnettle-signs-in-the-static-program.md).
let nettle = ["hogweed", "nettle", "gmp"]

/// Links the functions to which `CNettle/shim.h` has weak references.
let signatures: [String] =
  [
    "__gmp_set_memory_functions", "nettle_ecc_ecdsa_sign", "nettle_ecc_ecdsa_sign_itch", "nettle_ecc_point_mul_g",
    "nettle_get_secp_256r1",
  ].flatMap { ["-Xlinker", "--undefined=\($0)"] } + nettle.map { "-l" + $0 }

/// Links `credmgr` without a dynamic loader: answers from the vault take 0.5 ms instead of 6 ms
/// (docs/decisions/0001-two-programs-one-without-a-network.md). A static glibc program cannot resolve names, so
/// `credmgr-online` does everything that needs the network.
let fullyStatic: [LinkerSetting] = [
  .unsafeFlags(
    ["-static-executable", "-lm"] + small + quick + signatures + withoutExtensions + withoutCurves + withoutMathematics,
    .when(configuration: .release)),
  .unsafeFlags(
    isSanitized ? [] : ["-static-executable", "-lm", "-use-ld=lld"] + quick + signatures,
    .when(configuration: .debug)),
]

/// Finds `Packaging/libstdc++.so`, which stands for the static library.
let withCPlusPlus = [
  "-L" + Context.packageDirectory + "/Packaging", "-Xlinker", "--as-needed", "-Xclang-linker", "-static-libgcc",
]

/// Links the Swift library into the programs, which therefore need no Swift on the machine. They load no plug-ins, so
/// they export no symbols; relocations are packed (glibc 2.36 or later). The C++ library is linked as well: to load it
/// takes 0.7 ms at each start.
let staticLibrary: [LinkerSetting] = [
  .unsafeFlags(
    [
      "-static-stdlib", "-Xlinker", "--no-export-dynamic", "-Xlinker", "-z", "-Xlinker", "pack-relative-relocs",
      "-Xlinker", "-z", "-Xlinker", "now",
    ] + small + quick + withCPlusPlus,
    .when(configuration: .release)),
  .unsafeFlags(
    isSanitized ? [] : ["-static-stdlib", "-use-ld=lld"] + quick + withCPlusPlus, .when(configuration: .debug)),
]

/// For a program that defines `main` itself.
let entryPoint: [SwiftSetting] = isFetched ? [] : [.unsafeFlags(["-parse-as-library"])]

/// The dependencies of the fuzzer and of the tests of parsers of outside input.
let fuzzed: [Target.Dependency] = [
  "Text", "Commands", "CredentialManager", "OAuth", "Descriptors", "HTTP", "JSON", "XML", "YAML",
  "Cryptography",
]

let package = Package(
  name: "credmgr",
  products: [
    .library(name: "Credmgr", targets: ["Credmgr"]),
    .executable(name: "credmgr", targets: ["credmgr"]),
    .executable(name: "credmgr-online", targets: ["credmgr-online"]),
  ],
  targets: [
    // C libraries: a module map and a shim each, imported by exactly one Swift target.
    .systemLibrary(name: "CYAML", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"])]),
    .systemLibrary(name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
    // Without pkg-config, which would link it into every program (`nettle`).
    .systemLibrary(name: "CNettle", providers: [.apt(["nettle-dev", "libgmp-dev"])]),
    // Without pkg-config, which would link the libraries that credmgr loads when needed.
    .systemLibrary(name: "CCurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    .systemLibrary(name: "CQREncode", providers: [.apt(["libqrencode-dev"])]),
    .systemLibrary(name: "CTLS", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CPOSIX"),
    .systemLibrary(name: "CXML"),
    .systemLibrary(name: "CPQ"),

    // Libraries, from the bottom up.
    .target(name: "YAML", dependencies: ["CYAML"], swiftSettings: quick(compact)),
    .target(name: "JSON", swiftSettings: quick(strict)),
    .target(name: "Text", dependencies: ["JSON"], swiftSettings: quick(strict)),
    .target(name: "XML", dependencies: ["Text", "JSON", "CXML"], swiftSettings: quick(compact)),
    .target(name: "SQLite", dependencies: ["CSQLite"], swiftSettings: quick(strict)),
    .target(name: "Cryptography", dependencies: ["CSodium", "COpenSSL", "CNettle"], swiftSettings: quick(strict)),
    .target(
      name: "Platform", dependencies: ["Text", "CPOSIX"],
      // Places where a test can kill the program; the release build has none.
      swiftSettings: compact + [.define("FAULT_POINTS", .when(configuration: .debug))]),
    .target(name: "HTTP", dependencies: ["Text", "CPOSIX"], swiftSettings: quick(compact)),
    .target(name: "Curl", dependencies: ["Text", "CCurl", "HTTP"], swiftSettings: compact),
    .target(
      name: "PostgreSQL", dependencies: ["Text", "CPQ", "Cryptography", "Platform"], swiftSettings: compact),
    .target(name: "QRCode", dependencies: ["CQREncode"], swiftSettings: compact),
    .target(name: "TLS", dependencies: ["Text", "CTLS", "Cryptography", "HTTP"], swiftSettings: compact),
    .target(name: "Descriptors", dependencies: ["Text", "YAML", "JSON", "HTTP"], swiftSettings: quick(compact)),
    .target(
      name: "OAuth", dependencies: ["Text", "Descriptors", "HTTP", "Cryptography", "JSON", "XML"],
      swiftSettings: compact),
    .target(name: "Store", dependencies: ["Text", "Cryptography", "Platform"], swiftSettings: quick(strict)),
    .target(
      name: "Vault", dependencies: ["Text", "Store", "SQLite", "Cryptography", "Platform"],
      swiftSettings: compact),
    .target(
      name: "SharedVault", dependencies: ["Text", "Store", "PostgreSQL", "Cryptography", "Platform"],
      swiftSettings: compact),
    .target(
      name: "CredentialManager",
      dependencies: [
        "Text", "Descriptors", "OAuth", "Store", "Vault", "HTTP", "Platform", "Cryptography", "JSON", "YAML",
      ],
      swiftSettings: compact),
    .target(
      name: "Messages",
      dependencies: ["Text", "CredentialManager", "Descriptors", "OAuth", "Store", "HTTP", "Platform", "XML", "YAML"],
      swiftSettings: compact),
    .target(
      name: "Commands",
      dependencies: [
        "Text", "Messages", "CredentialManager", "Descriptors", "OAuth", "Store", "HTTP", "Platform",
        "Cryptography", "JSON", "YAML",
      ],
      swiftSettings: compact),
    .target(
      name: "Credmgr",
      dependencies: [
        "Text", "CredentialManager", "Cryptography", "Curl", "HTTP", "Messages", "Platform", "SharedVault",
      ],
      swiftSettings: strict),
    .target(
      name: "Simulator",
      dependencies: [
        "Text", "Commands", "CredentialManager", "Descriptors", "HTTP", "Messages", "Platform",
        "Cryptography", "JSON", "TLS",
      ],
      swiftSettings: compact),

    // Programs: `main`, one file each.
    .executableTarget(
      name: "credmgr", dependencies: ["Commands", "Platform"], swiftSettings: strict + entryPoint,
      linkerSettings: fullyStatic),
    .executableTarget(
      name: "credmgr-online",
      dependencies: [
        "Commands", "CredentialManager", "Curl", "HTTP", "Platform", "QRCode", "SharedVault", "Simulator",
      ],
      swiftSettings: strict + entryPoint,
      linkerSettings: staticLibrary),
    // Not installed: prints the table of commands, from which script/manual generates the manual.
    .executableTarget(
      name: "credmgr-manual", dependencies: ["Commands", "JSON", "Platform"], swiftSettings: strict),

    // Tests.
    .testTarget(name: "YAMLTests", dependencies: ["YAML"], swiftSettings: strict),
    .testTarget(name: "JSONTests", dependencies: ["JSON"], swiftSettings: strict),
    .testTarget(name: "XMLTests", dependencies: ["XML", "JSON"], swiftSettings: strict),
    .testTarget(name: "SQLiteTests", dependencies: ["SQLite"], swiftSettings: strict),
    .testTarget(
      name: "CryptographyTests", dependencies: ["Cryptography"], swiftSettings: strict,
      linkerSettings: nettle.map { .linkedLibrary($0) }),
    .testTarget(
      name: "StoreTests",
      dependencies: ["Text", "Store", "Vault", "SharedVault", "PostgreSQL", "Cryptography", "Platform"],
      swiftSettings: strict),
    // A model of the exchange between machines, without the code.
    .testTarget(name: "SharedVaultModelTests", swiftSettings: quick(strict)),
    .testTarget(
      name: "VaultTests", dependencies: ["Text", "Store", "Vault", "SQLite", "Cryptography", "Platform"],
      swiftSettings: strict),
    .testTarget(name: "TextTests", dependencies: ["Text"], swiftSettings: strict),
    .testTarget(name: "HTTPTests", dependencies: ["Text", "HTTP", "Platform"], swiftSettings: strict),
    .testTarget(name: "PlatformTests", dependencies: ["Text", "Platform"], swiftSettings: strict),
    .testTarget(name: "QRCodeTests", dependencies: ["QRCode"], swiftSettings: strict),
    .testTarget(name: "TLSTests", dependencies: ["TLS", "Cryptography"], swiftSettings: strict),
    .testTarget(name: "CurlTests", dependencies: ["Text", "Curl", "HTTP"], swiftSettings: strict),
    .testTarget(
      name: "DescriptorsTests", dependencies: ["Text", "Descriptors", "JSON", "YAML", "HTTP"], swiftSettings: strict),
    .testTarget(
      name: "OAuthTests",
      dependencies: ["Text", "OAuth", "Descriptors", "HTTP", "Cryptography", "JSON", "Platform"],
      exclude: ["Vectors", "Goldens"], swiftSettings: strict),
    .testTarget(
      name: "CredentialManagerTests",
      dependencies: [
        "Text", "Credmgr", "CredentialManager", "OAuth", "Descriptors", "HTTP", "Cryptography", "Platform", "Store",
        "Vault",
        "SQLite",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "CommandsTests",
      dependencies: [
        "Text", "Commands", "CredentialManager", "HTTP", "Messages", "OAuth", "Platform", "Descriptors", "Store",
        "YAML",
      ], exclude: ["Programs", "Transcripts"],
      swiftSettings: strict),
    .testTarget(
      name: "SimulatorTests",
      dependencies: [
        "Text", "Simulator", "Commands", "Messages", "OAuth", "Descriptors", "HTTP", "Cryptography", "JSON", "Platform",
        "TLS",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "FuzzedParsersTests", dependencies: fuzzed, exclude: ["Fuzzing"], swiftSettings: strict),
  ]
)

// script/fuzz builds the fuzzer instead of the test of the same parsers, because it needs another runtime.
if Context.environment["CREDMGR_FUZZING"] != nil {
  package.targets.removeAll { $0.name == "FuzzedParsersTests" }
  package.targets.append(
    .executableTarget(
      name: "Fuzzing", dependencies: fuzzed, path: "Tests/FuzzedParsersTests", exclude: ["FuzzedParsersTests.swift"],
      swiftSettings: strict, linkerSettings: [.unsafeFlags(["-use-ld=lld"])]))
}

// Every module but the library's own gets the prefix `Credmgr`, so that the package resolves beside packages with
// modules like `HTTP` and `SQLite`. Directories and this file keep the short names.
let internalNames = Set(
  package.targets.filter { [.regular, .system].contains($0.type) && $0.name != "Credmgr" }.map(\.name))

for target in package.targets {
  if internalNames.contains(target.name) {
    target.path = "Sources/\(target.name)"
    target.name = "Credmgr\(target.name)"
  }
  target.dependencies = target.dependencies.map { dependency in
    guard case .byNameItem(let name, let condition) = dependency, internalNames.contains(name) else {
      return dependency
    }
    return .byNameItem(name: "Credmgr\(name)", condition: condition)
  }
}
