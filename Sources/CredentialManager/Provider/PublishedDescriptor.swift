import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrPlatform
import CredmgrText

/// A descriptor that an organisation publishes at an address.
package struct PublishedDescriptor: Sendable {
  package let addition: ProviderAddition
  package let copy: Copy

  /// The text as it is installed, with a note of its origin before it.
  package struct Copy: Sendable, Equatable {
    package let location: String
    package let digest: String  // The SHA-256 of the text when it was fetched.
    package let text: String

    private static let beginning = ["# Fetched from ", "# SHA-256 "]

    init(_ text: String, from location: String) {
      (self.text, self.location) = (text, location)
      digest = Self.digest(of: text)
    }

    /// Reads an installed file; `nil` if it was not fetched.
    init?(installed bytes: [UInt8]) {
      let lines = String(decoding: bytes, as: UTF8.self).linesByScalars
      guard lines.count > 2, lines[0].hasPrefix(Self.beginning[0]), lines[1].hasPrefix(Self.beginning[1]) else {
        return nil
      }
      location = String(lines[0].dropFirst(Self.beginning[0].count))
      digest = String(lines[1].dropFirst(Self.beginning[1].count))
      text = lines.dropFirst(2).joined(separator: "\n")
    }

    var installed: [UInt8] {
      Array((Self.beginning[0] + location + "\n" + Self.beginning[1] + digest + "\n" + text).utf8)
    }

    /// Whether the installed text was changed.
    package var isEdited: Bool { Self.digest(of: text) != digest }

    private static func digest(of text: String) -> String {
      Hexadecimal.encode(HashAlgorithm.sha256.digest(Array(text.utf8)))
    }
  }
}

extension CredentialSource {
  /// Whether an address is that of a descriptor, and not that of an issuer.
  package static func isDescriptor(at address: String) -> Bool {
    let isHTTP = ["https", "http"].contains(address.prefix { $0 != ":" }.lowercased())
    return isHTTP && address.hasSuffix(".yaml") && !address.contains { "?#".contains($0) }
  }

  /// Fetches a descriptor. Does not follow redirects, because the user trusts this address and no other.
  package func fetch(_ address: String, as name: String?) throws(CredentialError) -> PublishedDescriptor {
    let uri = try wrapping({ CredentialError.http($0, provider: address) }, URI(parsing: address))
    guard uri.isSecure || uri.isLoopback else {
      throw .discovery(.insecure("issuer", text: address), issuer: address)
    }
    let response = try sendWithoutCredential(to: address, HTTPRequest(method: "GET", uri: uri))
    guard response.status == 200 else {
      throw .notPublished(address, status: response.status, location: response.fields["Location"])
    }
    let given = try addition(response.body, named: address, as: name)
    let text = String(decoding: given.file ?? response.body, as: UTF8.self)
    let copy = PublishedDescriptor.Copy(text, from: uri.text)
    return PublishedDescriptor(addition: try addition(copy.installed, named: address, as: nil), copy: copy)
  }

  /// The copy of a provider's descriptor in the user's directory; `nil` if it was not fetched.
  package func fetchedCopy(of provider: String) -> PublishedDescriptor.Copy? {
    let path = home.userProviders + "/" + provider + ".yaml"
    return (try? home.readDescriptor(path))?.flatMap { PublishedDescriptor.Copy(installed: $0) }
  }
}
