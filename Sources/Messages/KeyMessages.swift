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
  static func replacingCertificate(of provider: String) -> Remedy {
    let keys = ["--client-secret-file", "FILE", "--client-certificate", "FILE"]
    return "\(credmgr: ["add-provider", provider, "--replace"] + keys)"
  }

  static let removingPassphrase: Remedy =
    "\(run: "openssl", "pkey", "-in", "FILE", "-out", "NEW") to write the key without one"
  static let changingForm: Remedy = "\(run: "ssh-keygen", "-p", "-m", "PKCS8", "-f", "FILE") to change its form"
}
