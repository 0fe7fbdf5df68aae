import CredmgrCredentialManager
import CredmgrPlatform
import CredmgrText

extension ImportFault {
  package var message: Message {
    switch self {
    case .file(let error): error.message
    case .malformed(let path): .usage("cannot read \(quoted(path)): unknown format")
    case .program(let name, 0): .usage("\(quoted(name)) returned no secret")
    case .program("oidc-gen", _): .usage("\(quoted("oidc-gen")) cannot decrypt the account; the password may be wrong")
    case .program(let name, _): .usage("\(quoted(name)) failed")
    case .changed(let place): .usage("cannot remove the entry from \(quoted(place)): another program changed it")
    case .notRemovable(let place):
      .usage("cannot remove the entry from \(quoted(place)) without changing other entries").hint("edit it by hand")
    case .notErased(let name): .usage("\(quoted(name)) still returns it")
    case .notWorking(let place):
      .unexpected("cannot read the moved credential back from the vault; \(quoted(place)) is unchanged")
    }
  }
}

extension ImportAdvice {
  /// Why credmgr cannot store the entry.
  package var sentence: String {
    switch self {
    case .everyHost: "it is for every host, and credmgr stores a login only for one host"
    case .identityToken: "only the registry accepts this token"
    case .fileServer: "it is for a file server, whose programs cannot ask credmgr"
    }
  }

  /// How to get a credential instead; `nil` if the tool must keep it.
  package var remedy: Remedy? {
    switch self {
    case .identityToken: "\(run: "docker", "login") again when docker uses credmgr"
    case .everyHost, .fileServer: nil
    }
  }

  package var word: String {
    switch self {
    case .everyHost: "every_host"
    case .identityToken: "identity_token"
    case .fileServer: "file_server"
    }
  }
}
