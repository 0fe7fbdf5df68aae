// Fuzzes the parser named by CREDMGR_FUZZ. Only script/fuzz builds and runs this program.

import Glibc

/// Replaces libFuzzer's own `main`, because the package manager supplies one.
@_silgen_name("LLVMFuzzerRunDriver") func runDriver(
  _ count: UnsafeMutablePointer<Int32>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
) -> Int32

/// Prints the failed requirement and ends the program, which the fuzzer counts as a crash.
func require(_ condition: Bool, _ words: StaticString) {
  guard !condition else { return }
  print("does not hold: \(words)")
  abort()
}

guard let name = unsafe getenv("CREDMGR_FUZZ").flatMap({ unsafe String(validatingCString: $0) }) else {
  print(fuzzedParsers.keys.sorted().joined(separator: "\n"))
  exit(0)
}
guard let chosen = fuzzedParsers[name] else {
  print("unknown parser \"\(name)\"; known: \(fuzzedParsers.keys.sorted().joined(separator: " "))")
  exit(2)
}
/// The parser, for a C function without a context.
let target = chosen

/// The function that libFuzzer calls.
@_cdecl("LLVMFuzzerTestOneInput") func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
  unsafe target(Array(UnsafeBufferPointer(start: bytes, count: count)))
  return 0
}

var count = CommandLine.argc
var arguments = unsafe CommandLine.unsafeArgv
exit(unsafe runDriver(&count, &arguments, testOneInput))
