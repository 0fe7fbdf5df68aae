// Fuzzes whatever parses what comes from outside. Built and run by script/fuzz; it is no part of the ordinary build.
//
// CREDMGR_FUZZ names the parser.

import Glibc

/// libFuzzer's own `main` is not used: the package manager gives this program one.
@_silgen_name("LLVMFuzzerRunDriver") func runDriver(
  _ count: UnsafeMutablePointer<Int32>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
) -> Int32

/// Says what does not hold, and ends the program, which the fuzzer takes for a crash.
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
  print("there is no \"\(name)\"; there are: \(fuzzedParsers.keys.sorted().joined(separator: " "))")
  exit(2)
}
/// A C function has no context, so that it finds its parser here.
let target = chosen

/// The name that libFuzzer looks for.
@_cdecl("LLVMFuzzerTestOneInput") func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
  unsafe target(Array(UnsafeBufferPointer(start: bytes, count: count)))
  return 0
}

var count = CommandLine.argc
var arguments = unsafe CommandLine.unsafeArgv
exit(unsafe runDriver(&count, &arguments, testOneInput))
