import Commands
import Platform

/// What the C library calls. The package manager links `main` to this name.
///
/// Not a `main.swift`: Swift's own way to the arguments is a search of the stack with the help of /proc, at every
/// start, which takes as long as opening the vault (docs/performance.md).
@c(credmgr_main)
package func main(count: Int32, arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Int32 {
  unsafe Environment.keep(arguments)
  return Program.run()
}
