import CredmgrCryptography
import CredmgrDescriptors
import CredmgrJSON
import CredmgrPlatform
import CredmgrStore
import CredmgrText

/// The entries of all tools, and the files that credmgr could not use.
package struct ImportedEntries: Sendable {
  package struct Trouble: Sendable, Equatable {
    package let source: String
    package let fault: ImportFault
  }

  package private(set) var entries: [ImportEntry] = []
  package private(set) var troubles: [Trouble] = []

  package static let limit = 1000  // The most entries, so that a huge file cannot fill the terminal.

  package init(_ sources: [ImportSource], _ places: ImportPlaces) {
    for source in sources {
      var seen: [String] = []
      for path in source.files(places) {
        // Two variables may name one file.
        guard let resolved = Path.resolved(path), !seen.contains(resolved) else { continue }
        seen.append(resolved)
        note(source) { () throws(ImportFault) in try source.entries(path) }
      }
      note(source) { () throws(ImportFault) in try source.ask(places).map { source.labelled($0, $0.place) } }
    }
  }

  private mutating func note(_ source: ImportSource, _ read: () throws(ImportFault) -> [ImportEntry]) {
    do throws(ImportFault) {
      entries += try read().prefix(Self.limit - entries.count)
    } catch {
      troubles.append(Trouble(source: source.name, fault: error))
    }
  }
}

extension ImportSource {
  package func entries(_ path: String) throws(ImportFault) -> [ImportEntry] {
    guard let text = try ImportText.load(path) else { return [] }
    return try entries(text)
  }

  package func entries(_ text: ImportText) throws(ImportFault) -> [ImportEntry] {
    try read(text).map { labelled($0, text.path) }
  }

  fileprivate func labelled(_ entry: ImportEntry, _ place: String) -> ImportEntry {
    var entry = entry
    entry.source = name
    // The entry of a helper is not in the file that names the helper.
    if entry.place.isEmpty { entry.place = place }
    // GitHub and others take a token as the user name, with this password.
    if entry.kind == .password, entry.user != nil, case .value(let secret) = entry.held,
      ["x-oauth-basic", "X-OAuth-Basic"].contains(where: { Secret($0) == secret })
    {
      (entry.isUserToken, entry.kind) = (true, .token)
    }
    if entry.shownUser != entry.user { entry.name = entry.host }
    return entry
  }
}

extension ImportEntry {
  /// Gets the user name and the secret, with the tool's own program if they are not in a file.
  package func login(
    _ places: ImportPlaces, password: Secret? = nil
  ) throws(ImportFault) -> (user: String?, secret: Secret) {
    switch held {
    case .value(let secret): return (user, secret)
    case .command(var command):
      if let password { command.input = password.reveal() }
      let output = String(decoding: try places.run(command), as: UTF8.self)
      if form != .secret { return (user, Secret(output)) }
      let lines = output.split(whereSeparator: \.isNewline)
      var user = user
      let line: Substring?
      if command.key == "Secret" {
        let answer = try? JSONValue.parse(Array(output.utf8))
        line = answer?["Secret"]?.text.map { $0[...] }
        if let name = answer?["Username"]?.text, !name.isEmpty { user = name }
      } else if let key = command.key {
        line = lines.first { $0.hasPrefix(key + "=") }?.dropFirst(key.count + 1)
      } else {
        line = lines.first
      }
      guard let line, !line.isEmpty else { throw .program(command.program, status: 0) }
      return (user, Secret(String(line)))
    }
  }

  /// Whether the old place has more than the secret, which would be lost with it: an entry of pass may also have a user
  /// name, a second factor or recovery codes. Git Credential Manager repeats there what the path says.
  package func hasFurtherLines(_ places: ImportPlaces) throws(ImportFault) -> Bool {
    guard case .command(let command) = held, command.program == "pass" else { return false }
    return String(decoding: try places.run(command), as: UTF8.self).split(whereSeparator: \.isNewline).dropFirst()
      .contains { !$0.hasPrefix("service=") && !$0.hasPrefix("account=") }
  }

  package var isRemovable: Bool { removal != .none }

  /// The values of the descriptor's fields, from the variables that programs of the provider read.
  package func values(of descriptor: Descriptor) -> [String: Secret] {
    descriptor.environment.compactMapValues { names in names.lazy.compactMap { variables[$0] }.first }
  }

  /// The user name, unless it may be a token.
  package var shownUser: String? {
    isUserToken ? nil : user.map(CredentialSource.shown)
  }

  /// Removes the entry from its old place. A copy of the file is next to it until `isWorking` confirms that the vault
  /// has the credential; without that, the file is restored.
  package func remove(_ places: ImportPlaces, isWorking: () -> Bool) throws(ImportFault) {
    switch removal {
    case .none: throw .notRemovable(place: place)
    case .command(let command):
      guard isWorking() else { throw .notWorking(place: place) }
      _ = try places.run(command)
      if case .command(let reading) = held, (try? login(places)) != nil { throw .notErased(program: reading.program) }
    case .file:
      guard let path = Path.resolved(place) else { throw .changed(path: place) }
      // Another program may have replaced the file since it was read.
      if case .value(let secret) = held, try ImportText.load(place).map({ Secret(bytes: $0.bytes) }) != secret {
        throw .changed(path: place)
      }
      guard isWorking() else { throw .notWorking(place: place) }
      do throws(POSIXError) { try File.remove(path) } catch { throw .file(error) }
    case .cut, .json:
      guard let source = ImportSource.all.first(where: { $0.name == source }),
        let path = Path.resolved(place), let text = try ImportText.load(place)
      else { throw .changed(path: place) }
      let before = try source.entries(text)
      // The file may have changed since it was read.
      guard let entry = before.first(where: isSame) else { throw .changed(path: place) }
      let rest = try ImportText(path: place, entry.edited(text))
      let expected = before.filter { !$0.isSame(as: self) }
      guard let after = try? source.entries(rest), after.count == expected.count,
        zip(after, expected).allSatisfy({ $0.isSame(as: $1) })
      else { throw .notRemovable(place: place) }
      // A file of this name may be the user's, or the copy of an interrupted move.
      let names = (1...100).map { path + ".credmgr-copy" + ($0 == 1 ? "" : ".\($0)") }
      guard let copy = names.first(where: { !File.exists($0) }) else { throw .notRemovable(place: place) }
      do throws(POSIXError) {
        try PrivateFile.replace(copy, text.bytes)
        try PrivateFile.replace(path, rest.bytes)
        if isWorking() {
          try File.remove(copy)
          return
        }
        try PrivateFile.replace(path, text.bytes)
        try File.remove(copy)
      } catch { throw .file(error) }
      throw .notWorking(place: place)
    }
  }

  private func edited(_ text: ImportText) throws(ImportFault) -> [UInt8] {
    switch removal {
    case .cut(let ranges): return text.without(ranges)
    case .json(let paths):
      guard var value = try? JSONValue.parse(text.bytes) else { throw .malformed(path: text.path) }
      for path in paths { value = value.without(path[...]) }
      return Array((value.formatted + "\n").utf8)
    case .command, .file, .none: throw .notRemovable(place: place)
    }
  }
}

extension CredentialSource {
  /// Returns the account that already has the token of an entry, and the other parts of its key.
  package func account(
    having token: Secret, of entry: ImportEntry, at provider: String
  ) throws(CredentialError) -> Account? {
    let descriptor = entry.variables.isEmpty ? nil : try descriptor(provider).descriptor
    let values = descriptor.map(entry.values) ?? [:]
    let parts = descriptor?.environment.keys.filter { descriptor?.variable($0)?.isAtLogin == true } ?? []
    return try accountsIfAny()?.accounts(of: provider).first { account in
      account.credential.accessToken == token
        && parts.allSatisfy { account.credential.variables[$0].map { Secret($0) } == values[$0] }
    }
  }

  /// Returns the account that began with this refresh token of another tool.
  package func account(
    importedFrom token: Secret, of provider: String
  ) throws(CredentialError) -> Account? {
    try accountsIfAny()?.accounts(of: provider).first { $0.credential.importedFrom == token }
  }

  /// Whether the vault returns the account with its token.
  package func has(_ account: Account) -> Bool { has(account.credential.accessToken, for: account.id) }

  /// Whether the vault returns this token for the account.
  package func has(_ token: Secret, for id: AccountID) -> Bool {
    (try? accountsIfAny()?.account(id))?.credential.accessToken == token
  }
}

extension JSONValue {
  /// Returns the value without the member at a path. Everything else keeps its order.
  fileprivate func without(_ path: ArraySlice<String>) -> JSONValue {
    guard let name = path.first, case .object(let members) = self else { return self }
    if path.count == 1 { return .object(members.filter { $0.name != name }) }
    return .object(members.map { $0.name == name ? Member(name, $0.value.without(path.dropFirst())) : $0 })
  }
}
