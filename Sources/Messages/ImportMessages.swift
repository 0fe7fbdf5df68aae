import CredmgrCredentialManager
import CredmgrPlatform
import CredmgrText

extension ImportFault {
  package var message: Message {
    switch self {
    case .file(let error): error.message
    case .malformed(let path): .usage("cannot read \(quoted(path)): its tool did not write it in a known form")
    case .program(let name, 0): .usage("\(quoted(name)) returned no secret")
    case .program(let name, _): .usage("\(quoted(name)) failed")
    case .changed(let place): .usage("cannot clean \(quoted(place)): another program changed it meanwhile")
    case .notRemovable(let place):
      .usage("cannot remove the entry from \(quoted(place)) without changing other entries").hint("edit it by hand")
    case .notWorking(let place):
      .unexpected("cannot read the moved credential back from the vault; \(quoted(place)) is unchanged")
    }
  }
}

extension ImportAdvice {
  /// Why credmgr cannot store the entry, and what to do instead.
  package var sentence: String {
    switch self {
    case .signsRequests: "this key signs each request, which credmgr does not support; leave it with its tool"
    case .belongsToClient(let identifier):
      "this refresh token works only for the tool's own client"
        + (identifier.map { " \($0)" } ?? "") + "; run \"credmgr login google\" to get a token for yours"
    case .serviceAccount: "this is the key of a service account, which credmgr does not support; leave it with its tool"
    case .encrypted: "the tool encrypts it; run \"credmgr add-provider ISSUER\" with its issuer, and log in again"
    case .everyHost: "it is for every host, and credmgr stores a login only for one"
    case .identityToken: "only the registry accepts this token; run \"docker login\" again after \"credmgr import\""
    }
  }

  package var word: String {
    switch self {
    case .signsRequests: "signs_requests"
    case .belongsToClient: "belongs_to_client"
    case .serviceAccount: "service_account"
    case .encrypted: "encrypted"
    case .everyHost: "every_host"
    case .identityToken: "identity_token"
    }
  }
}
