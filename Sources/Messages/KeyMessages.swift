import CredmgrOAuth
import CredmgrText

extension CertificateFault {
  package var sentence: String {
    switch self {
    case .unreadable: "it is not a valid certificate"
    case .noKey: "its private key is missing or not valid"
    case .otherKey: "the private key belongs to another certificate"
    case .expired(let end): "it expired at \(end.text)"
    case .notYetValid(let begin): "it is valid only from \(begin.text); the clock of this machine may be wrong"
    }
  }
}

extension Remedy {
  package static func replacingCertificate(of provider: String) -> Remedy {
    let keys = ["--client-secret-file", "FILE", "--client-certificate", "FILE"]
    return "\(credmgr: ["add-provider", provider, "--replace"] + keys)"
  }

  static let removingPassphrase: Remedy =
    "\(run: "openssl", "pkey", "-in", "FILE", "-out", "NEW") to write the key without one"
  static let changingForm: Remedy = "\(run: "ssh-keygen", "-p", "-m", "PKCS8", "-f", "FILE") to change its form"
}

/// Whether a text may be a key that the user pasted instead of a name: 16 letters and digits in a row, or 12 with
/// letters of both cases. No message repeats such a text.
package func mayBeKey(_ text: String) -> Bool {
  let pieces = text.utf8.split { byte in
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      false
    default: true
    }
  }
  return pieces.contains { piece in
    func has(_ range: ClosedRange<UInt8>) -> Bool { piece.contains(where: range.contains) }
    let isMixed = has(UInt8(ascii: "a")...UInt8(ascii: "z")) && has(UInt8(ascii: "A")...UInt8(ascii: "Z"))
    return piece.count >= 16 && has(UInt8(ascii: "0")...UInt8(ascii: "9")) || piece.count >= 12 && isMixed
  }
}

/// Returns a word of the user in quotes, after a space, or `other` for a text that may be a key.
package func shown(_ text: String, or other: String = "") -> String { mayBeKey(text) ? other : " " + quoted(text) }
