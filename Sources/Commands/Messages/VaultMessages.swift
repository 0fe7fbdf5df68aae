import CredentialManager
import Glibc
import Platform
import Text
import Store

extension VaultPart {
  var words: String {
    switch self {
    case .structure: "its structure"
    case .schema: "its tables"
    case .slots: "its key slots"
    case .header: "its header"
    case .index(let number): "part \(number) of its index"
    }
  }
}

extension RecordIdentifier {
  /// What a person calls the record.
  var words: String {
    switch kind {
    case .credential: "the credential of \(quoted(account)) at \(quoted(provider))"
    case .registration: "the registration at \(quoted(provider))"
    case .selection: "the choice of the default account at \(quoted(provider))"
    case .login: "the login of \(quoted(account)) at \(quoted(provider))"
    case .event: "an entry of the log"
    case .host: "the claim of \(quoted(provider))"
    case .pending: "the note of an exchange for \(quoted(account)) at \(quoted(provider))"
    }
  }
}

extension VaultFinding {
  /// What is not as it was written.
  var sentence: String {
    switch self {
    case .record(let record, let fault): "\(record.words) \(fault.words)"
    case .unknownRecord(let lookup): "a row that belongs to no record (\(lookup))"
    case .index(let number, let fault): "part \(number) of the index \(fault.words)"
    case .header: "the header was altered"
    case .slots: "the key slots were altered"
    case .schema: "the tables are not those of a vault"
    case .structure: "the structure of the file is damaged"
    }
  }
}

extension VaultFinding.RecordFault {
  var words: String {
    switch self {
    case .altered: "was altered"
    case .dropped: "was removed"
    case .replayed: "is an older one"
    case .swapped(let other): "was exchanged for \(other.words)"
    }
  }
}

extension VaultFinding.IndexFault {
  var words: String {
    switch self {
    case .altered: "was altered"
    case .dropped: "was removed"
    case .replayed: "is an older one"
    }
  }
}
