import CredmgrCryptography
import CredmgrHTTP
import CredmgrPlatform

extension ImportSource {
  /// The files of `git credential-store`: one URL with a user name and a password on each line.
  static let gitCredentialStore = ImportSource(
    name: "git-store", title: "git credential-store",
    files: { places in
      let standard = [places.inHome(".git-credentials"), places.configuration.map { $0 + "/git/credentials" }]
      // Outside of every repository, because one from a stranger could name a file of its own.
      let git = ImportCommand(program: "git", arguments: ["-C", "/", "config", "--get-all", "credential.helper"])
      let listed = try? places.run(git)
      let helpers = String(decoding: listed ?? [], as: UTF8.self).split(separator: "\n")
      return standard.compactMap { $0 } + helpers.compactMap { file(ofHelper: $0, places) }
    },
    read: { text throws(ImportFault) in
      text.lines.compactMap { line in
        guard let login = URLLogin(line.text) else { return nil }
        let name = login.user.map { $0 + "@" + login.host } ?? login.host
        var entry = ImportEntry(
          name, host: login.host, user: login.user, kind: .password, use: .git, held: .value(login.password),
          removal: .cut([line.range]))
        entry.address = login.address
        return entry
      }
    })

  /// Returns the file in `store --file FILE`; `nil` for another helper.
  private static func file(ofHelper helper: Substring, _ places: ImportPlaces) -> String? {
    let words = helper.split { $0 == " " || $0 == "=" }
    guard words.count == 3, words[0] == "store", words[1] == "--file" else { return nil }
    let path = String(words[2])
    return path.hasPrefix("~/") ? places.inHome(String(path.dropFirst(2))) : path.hasPrefix("/") ? path : nil
  }
}

/// A URL with a user name and a password (gitcredentials(7)).
struct URLLogin {
  let host: String
  let user: String?
  let password: Secret
  let address: String?  // With a path, or without TLS.

  init?(_ text: String) {
    guard let mark = text.firstPlace(of: "://") else { return nil }
    let scheme = text[..<mark.lowerBound]
    let rest = text[mark.upperBound...]
    let authority = rest.prefix { $0 != "/" }
    guard ["https", "http"].contains(scheme), let sign = authority.lastIndex(of: "@") else { return nil }
    let pair = authority[..<sign].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    func decoded(_ text: Substring) -> String? { PercentEncoding.decode(String(text), plusAsSpace: false) }
    // git encodes even the colon before a port.
    guard pair.count == 2, let server = decoded(authority[authority.index(after: sign)...]),
      let user = decoded(pair[0]), let password = decoded(pair[1]), !password.isEmpty
    else {
      return nil
    }
    let path = decoded(rest.dropFirst(authority.count)) ?? ""
    host = importedHost("\(scheme)://\(server)")
    guard !host.isEmpty else { return nil }
    self.user = user.isEmpty ? nil : user
    self.password = Secret(password)
    address = scheme == "https" && ["", "/"].contains(path) ? nil : "\(scheme)://\(server)\(path)"
  }
}
