import CredmgrCryptography
import Glibc
import CredmgrPlatform
import CredmgrStore
import Testing

@testable import CredmgrVault

@Suite("Key slots") struct KeySlotTests {
  private let temporary: TemporaryVault
  private let vault: Vault
  private let location: VaultLocation
  private let ana = RecordIdentifier.credential("github", "ana")
  private let random = SystemRandomSource()

  init() throws {
    temporary = try TemporaryVault()
    location = temporary.location
    vault = try temporary.open()
    try vault.store(Secret("token"), as: ana)
  }

  private func passphrase(_ text: String) throws -> SlotDraft {
    try .passphrase(Secret(text), costs: .cheap, random: random)
  }

  private func token(_ holders: [KeyHolder]) throws -> String? {
    try temporary.open(.readOnly, holders: holders).record(ana)?.payload.reveal()
  }

  @Test("a passphrase opens the vault with or without a key file") func passphrase() throws {
    try vault.protect(with: passphrase("correct"), now: 5)
    #expect(try vault.status.slots.map(\.kind) == [.keyFile, .passphrase])
    #expect(try token([.keyFile]) == "token")
    #expect(try token([.answering("correct")]) == "token")
    try vault.unprotect(.keyFile)
    // The status needs no key.
    let slot = VaultStatus.Slot(kind: .passphrase, created: 5)
    let expected = VaultStatus(path: location.file, formatVersion: 1, slots: [slot], recordCount: 1)
    #expect(try Vault.status(of: location) == expected)
    #expect(!File.exists(location.keyFile))
    #expect(try token([.keyFile, .answering("correct")]) == "token")
    #expect(throws: VaultError.locked([.passphrase])) { try temporary.open(holders: [.keyFile]) }
    #expect(try vault.verify() == [])
    // An existing vault gets no new key file.
    #expect(!File.exists(location.keyFile))
  }

  @Test("a wrong passphrase leads to another prompt, unlike a damaged slot") func wrongPassphrase() throws {
    try vault.protect(with: passphrase("correct"), now: 0)
    try vault.unprotect(.keyFile)
    for wrong in ["", "wrong", "Correct", "correct "] {
      #expect(throws: VaultError.wrongPassphrase) { try token([.answering(wrong)]) }
    }
    #expect(try token([.answering("wrong", "", "correct")]) == "token")
    #expect(try vault.accepts(Secret("correct")) == true)
    #expect(try vault.accepts(Secret("wrong")) == false)
    #expect(throws: VaultError.wrongPassphrase) { try passphrase("") }
  }

  @Test(
    "a passphrase slot with an altered byte is damaged for every passphrase",
    arguments: [("parameters", 0), ("parameters", 20), ("parameters", 34), ("parameters", 45), ("wrapped", 50)])
  func damagedSlot(_ column: String, _ byte: Int) throws {
    try vault.protect(with: passphrase("correct"), now: 0)
    try vault.unprotect(.keyFile)
    let slot = try #require(try vault.file.slots().first)
    var bytes = column == "wrapped" ? slot.wrapped : slot.parameters
    bytes[byte] ^= 1
    try temporary.tamper("UPDATE slot SET \(column)=x'\(Hexadecimal.encode(bytes))'")
    #expect(throws: VaultError.damaged(path: location.file, .slots)) { try token([.answering("correct")]) }
  }

  @Test("a new passphrase replaces the old one") func changedPassphrase() throws {
    try vault.protect(with: passphrase("old"), now: 0)
    try vault.protect(with: passphrase("new"), now: 0)
    #expect(try vault.status.slots.count == 2)
    #expect(try token([.answering("new")]) == "token")
    #expect(throws: VaultError.wrongPassphrase) { try token([.answering("old")]) }
    #expect(try vault.verify() == [])
  }

  @Test("slots contain their costs, which are at least moderate for new vaults") func costs() throws {
    #expect(PassphraseCosts.moderate.operations >= 3)
    #expect(PassphraseCosts.moderate.memory >= 256 << 20)
    let draft = try passphrase("x")
    let parameters = try #require(PassphraseParameters(decoding: draft.parameters))
    #expect(parameters.costs == .cheap)
  }

  @Test("removing the last slot fails without changes", arguments: [SlotKind.keyFile, .passphrase, .secretService])
  func lastSlot(_ kind: SlotKind) throws {
    let drafts: [SlotKind: SlotDraft] = [
      .passphrase: try passphrase("p"), .secretService: try .secretService(random: random),
    ]
    if let draft = drafts[kind] {
      try vault.protect(with: draft, now: 0)
      try vault.unprotect(.keyFile)
    }
    let before = TemporaryVault.read(location.file)
    #expect(throws: VaultError.lastSlot(kind)) { try vault.unprotect(kind) }
    #expect(TemporaryVault.read(location.file) == before)
    #expect(File.exists(location.keyFile) == (kind == .keyFile))
    for other in SlotKind.allCases where other != kind {
      #expect(throws: VaultError.noSlot(other)) { try vault.unprotect(other) }
    }
  }

  @Test("a slot of an unknown kind does not count as a way to open the vault") func unknownKind() throws {
    try vault.protect(with: passphrase("p"), now: 0)
    try vault.change { change, _ throws(VaultError) in
      var slots = try vault.file.slots()
      slots[1].kind = 99
      try change.setSlots(slots)
    }
    #expect(throws: VaultError.lastSlot(.keyFile)) { try vault.unprotect(.keyFile) }
    #expect(try vault.status.slots.map(\.kind) == [.keyFile, nil])
    #expect(throws: VaultError.otherSlots) { try vault.rotate(to: [.keyFile(random: random)], now: 0) }
  }

  @Test("a key file can be renewed, and added again after removal") func keyFile() throws {
    let old = TemporaryVault.read(location.keyFile)
    try vault.protect(with: .keyFile(random: random), now: 0)
    let new = TemporaryVault.read(location.keyFile)
    #expect(new != old)
    #expect(try token([.keyFile]) == "token")
    #expect(!File.exists(location.nextKeyFile))
    TemporaryVault.write(location.keyFile, old)
    #expect(throws: VaultError.keyFileOfAnotherVault(path: location.keyFile)) { try token([.keyFile]) }
    TemporaryVault.write(location.keyFile, new)
    try vault.protect(with: passphrase("p"), now: 0)
    try vault.unprotect(.keyFile)
    try temporary.open(holders: [.answering("p")]).protect(with: .keyFile(random: random), now: 0)
    #expect(try token([.keyFile]) == "token")
    #expect(![old, new].contains(TemporaryVault.read(location.keyFile)))
  }

  /// A commit moves its key file afterwards, possibly between checks of the two places.
  @Test("a key file that moves between two checks is found") func keyFileMovedMeanwhile() throws {
    try temporary.open().store(Secret("token"), as: ana)
    let (place, next) = (location.keyFile, location.nextKeyFile)
    let (key, others) = (TemporaryVault.read(place), try KeyFile(random: random).content)
    for before in [others, nil] {
      unsafe unlink(place)
      if let before { TemporaryVault.write(place, before) }
      let moves = KeyHolder.opened { _ in
        TemporaryVault.write(place, key)
        return nil
      }
      #expect(try token([.keyFile, moves]) == "token")
      #expect(!File.exists(next))
    }
    // If the file still belongs to another vault, opening reports that instead of checking without end.
    TemporaryVault.write(place, others)
    #expect(throws: VaultError.keyFileOfAnotherVault(path: place)) { try token([.keyFile]) }
  }

  @Test("a process dies after committing a key file's slot and before moving the file")
  func unsettledKeyFile() throws {
    let old = TemporaryVault.read(location.keyFile)
    try vault.protect(with: .keyFile(random: random), now: 0)
    let new = TemporaryVault.read(location.keyFile)
    TemporaryVault.write(location.nextKeyFile, new)
    for present in [old, nil] {
      unsafe unlink(location.keyFile)
      if let present { TemporaryVault.write(location.keyFile, present) }
      #expect(try token([.keyFile]) == "token")
    }
    // The next change of the key file keeps the one in force.
    #expect(throws: VaultError.conflict(ana, actual: 1)) {
      try vault.change { change, _ throws(VaultError) in
        try vault.stage([.keyFile(random: random)], over: vault.file.slots())
        throw VaultError.conflict(ana, actual: 1)
      }
    }
    #expect(TemporaryVault.read(location.keyFile) == new)
    #expect(File.exists(location.nextKeyFile))
    #expect(try token([.keyFile]) == "token")
    try vault.settleKeyFile()
    #expect(!File.exists(location.nextKeyFile))
  }

  @Test("an unreadable key file is not removed, because it may be in force")
  func unreadableKeyFile() throws {
    try vault.protect(with: .keyFile(random: random), now: 0)
    let (place, next) = (location.keyFile, location.nextKeyFile)
    TemporaryVault.write(next, TemporaryVault.read(place))
    unsafe unlink(place)
    unsafe chmod(next, 0o644)
    #expect(throws: VaultError.file(.readableByOthers(path: next, mode: 0o644))) { try vault.settleKeyFile() }
    #expect(File.exists(next))
    unsafe chmod(next, 0o600)
    #expect(try token([.keyFile]) == "token")
    try vault.settleKeyFile()
    #expect(!File.exists(next) && File.exists(place))
    // A file with other content is ignored.
    TemporaryVault.write(next, [1])
    try vault.settleKeyFile()
    #expect(!File.exists(next))
  }

  @Test("the vault opens with other slots despite a damaged slot or a missing key file")
  func otherHolders() throws {
    try vault.protect(with: passphrase("p"), now: 0)
    let key = TemporaryVault.read(location.keyFile)
    unsafe unlink(location.keyFile)
    #expect(try token([.keyFile, .answering("p")]) == "token")
    #expect(throws: VaultError.keyFileMissing(path: location.keyFile)) {
      try token([.keyFile, .passphrase { _ throws(VaultError) in throw .passphraseUnavailable(.noTerminal) }])
    }
    TemporaryVault.write(location.keyFile, key)
    try temporary.tamper("UPDATE slot SET wrapped=zeroblob(104) WHERE kind=1")
    #expect(try token([.keyFile, .answering("p")]) == "token")
    #expect(try temporary.open(.readOnly, holders: [.answering("p")]).verify() == [.slots])
  }

  @Test("a key file that others can read is rejected without a prompt") func unsafeKeyFile() throws {
    try vault.protect(with: passphrase("p"), now: 0)
    unsafe chmod(location.keyFile, 0o644)
    #expect(throws: VaultError.file(.readableByOthers(path: location.keyFile, mode: 0o644))) {
      try token([.keyFile, .answering("p")])
    }
  }

  @Test("the Secret Service stores a key, and the vault only its name") func secretService() throws {
    let draft = try SlotDraft.secretService(random: random)
    let item = try #require(draft.item)
    #expect(try vault.secretServiceItem == nil)
    #expect(try vault.protect(with: draft, now: 0) == nil)
    #expect(try vault.secretServiceItem == item.name)
    try vault.unprotect(.keyFile)
    func holder(_ key: Secret) -> KeyHolder {
      .secretService { name throws(VaultError) in
        guard name == item.name else { throw .secretService(.noKey) }
        return key
      }
    }
    #expect(try token([holder(item.key)]) == "token")
    #expect(throws: VaultError.secretService(.noKey)) { try token([holder(Secret("short"))]) }
    #expect(throws: VaultError.damaged(path: location.file, .slots)) {
      try token([holder(Secret(bytes: random.bytes(32)))])
    }
    #expect(throws: VaultError.secretService(.timedOut)) {
      try token([.secretService { _ throws(VaultError) in throw .secretService(.timedOut) }])
    }
    let next = try SlotDraft.secretService(random: random)
    #expect(try vault.protect(with: next, now: 0) == item.name)
    try vault.protect(with: passphrase("p"), now: 0)
    #expect(try vault.unprotect(.secretService) == next.item?.name)
    #expect(try vault.verify() == [])
  }

  @Test("holders are asked in their order until one has a key") func order() throws {
    try vault.protect(with: passphrase("p"), now: 0)
    let refuses = KeyHolder.passphrase { _ throws(VaultError) in throw .wrongPassphrase }
    #expect(try token([.keyFile, refuses]) == "token")
    #expect(throws: VaultError.wrongPassphrase) { try token([refuses, .keyFile]) }
  }

  @Test("cached keys open only their own vault") func openedKeys() throws {
    try vault.protect(with: passphrase("p"), now: 0)
    try vault.unprotect(.keyFile)
    let (name, keys, foundBy) = vault.openedKeys
    #expect(foundBy == .keyFile)
    let keep = KeyHolder.opened { $0 == name ? keys : nil }
    #expect(try token([keep]) == "token")
    #expect(try temporary.open(.readOnly, holders: [keep]).openedKeys.foundBy == nil)
    let other = try TemporaryVault()
    try other.open().store(Secret("x"), as: ana)
    try other.open().protect(with: passphrase("p"), now: 0)
    try other.open().unprotect(.keyFile)
    let anyway = KeyHolder.opened { _ in keys }
    #expect(throws: VaultError.locked([.passphrase])) { try other.open(holders: [anyway]) }
    #expect(throws: VaultError.locked([.passphrase])) {
      try temporary.open(holders: [.opened { _ in Secret("short") }, .opened { _ in nil }])
    }
  }

  @Test("the last concurrent change of slots wins, and the vault can always be opened")
  func races() async throws {
    let location = location
    try vault.protect(with: passphrase("p"), now: 0)
    let changes: @Sendable () throws -> Void = {
      for _ in 0..<10 {
        let vault = try location.open(holders: [.keyFile, .answering("p")])
        try vault.protect(with: .keyFile(random: SystemRandomSource()), now: 0)
        _ = try? vault.unprotect(.keyFile)
      }
    }
    let reads: @Sendable () throws -> Void = {
      for _ in 0..<60 {
        let vault = try location.open(.readOnly, holders: [.keyFile, .answering("p")])
        #expect(try vault.record(.credential("github", "ana"))?.payload.reveal() == "token")
      }
    }
    try await concurrently(Array(repeating: changes, count: 4) + [reads])
    #expect(try token([.answering("p")]) == "token")
    #expect(try vault.verify() == [])
    #expect(!File.exists(location.nextKeyFile))
    #expect(File.exists(location.keyFile) == (try vault.status.slots.contains { $0.kind == .keyFile }))
  }
}

extension PassphraseCosts {
  /// The lowest costs that Argon2id allows, for tests.
  static let cheap = PassphraseCosts(operations: 1, memory: 8192)
}

extension KeyHolder {
  /// Returns one answer after the other, and then none.
  static func answering(_ answers: String...) -> KeyHolder {
    .passphrase { attempt throws(VaultError) in
      guard attempt <= answers.count else { throw .wrongPassphrase }
      return Secret(answers[attempt - 1])
    }
  }
}
