import Glibc

/// The terminal of the process, whatever its streams are (`/dev/tty`, tty(4)).
package final class ControllingTerminal {
  private let descriptor: Descriptor

  /// `nil` where there is none, as in a service.
  package init?() {
    guard let descriptor = try? Descriptor(opening: "/dev/tty", O_RDWR) else { return nil }
    self.descriptor = descriptor
  }

  /// Valid while this object lives.
  package var number: Int32 { descriptor.number }
}
