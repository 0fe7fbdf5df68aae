import CredmgrCommands
import CredmgrPlatform

/// The entry point that the C library calls: the package manager links `main` to this name.
///
/// A `main.swift` would be slower: Swift's runtime finds the arguments by searching the stack with the help of /proc,
/// which takes as long as opening the vault (docs/performance.md).
@c(credmgr_main)
package func main(count: Int32, arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Int32 {
  unsafe Environment.keep(arguments)
  return Program.answerFromVault()
}
