import CredmgrCryptography
import CredmgrPlatform
import CredmgrStore

extension TeamVault {
  package func record(_ identifier: RecordIdentifier) throws(StoreError) -> Record? {
    defer { saveSeenUnlessBusy() }
    let name = CellName(identifier)
    switch try cells([name])[name] {
    case .cell(let stored): return stored.record(identifier)
    case .faulty(let error, _): throw error
    case .absent, nil: return nil
    }
  }

  /// In the middle of an exchange, what was seen is stored with the end of it.
  private func saveSeenUnlessBusy() { if leases.isEmpty { saveSeen() } }

  package func records(_ kind: RecordKind, provider: String?) throws(StoreError) -> [Record] {
    let read = try list(kind, provider)
    saveSeenUnlessBusy()
    return read.compactMap { name, loaded -> Record? in
      guard case .cell(let stored) = loaded, let identifier = name.identifier else { return nil }
      return stored.record(RecordIdentifier(kind: kind, provider: identifier.provider, account: identifier.account))
    }.filter { record in
      record.identifier.kind == kind
        && provider.map { record.identifier.provider.utf8.elementsEqual($0.utf8) } ?? true
    }.sorted { ($0.identifier.provider, $0.identifier.account) < ($1.identifier.provider, $1.identifier.account) }
  }

  private static let directory = (0..<CellName.directoryCount).map { CellName.directory($0) }

  /// The cells of a kind, and the directory. A cell that cannot be opened is left out, because only its name would tell
  /// what it is.
  private func list(_ kind: RecordKind, _ provider: String?) throws(StoreError) -> [CellName: Loaded] {
    try beginView()
    return try withAllSeen { () throws(StoreError) in try listed(kind, provider) }
  }

  private func listed(_ kind: RecordKind, _ provider: String?) throws(StoreError) -> [CellName: Loaded] {
    let kind = kind == .pending ? RecordKind.credential : kind
    let rows = try current { keys in
      (
        Schema.list,
        [
          .bytes(keys.grouping(kind, provider: nil)),
          .bytes(provider.map { keys.grouping(kind, provider: $0) }), .byteLists(Self.directory.map(keys.lookup)),
        ]
      )
    }
    var cells: [CellName: Loaded] = [:]
    for row in rows {
      guard let cell = Cell(opening: row.sealed, keys, vault: vault, lookup: row.lookup, revision: row.revision) else {
        continue
      }
      cells[cell.name] = try loaded(cell.name, row)
    }
    // The server can change the columns by which it finds the rows of a kind, but not the directory.
    var hidden: [CellName] = []
    for part in Self.directory {
      guard case .cell? = cells[part] else { continue }
      hidden += try directory(part, in: cells).records.filter { identifier in
        identifier.kind == kind && provider.map { identifier.provider.utf8.elementsEqual($0.utf8) } ?? true
      }.map(CellName.record).filter { cells[$0] == nil }
    }
    cells = compared(cells)
    if hidden.isEmpty { return cells }
    return cells.merging(try fetch(hidden)) { first, _ in first }
  }

  package func unreadable(
    _ kind: RecordKind, provider: String?, without known: Set<RecordIdentifier>
  ) throws(StoreError) -> [RecordIdentifier] {
    let cells = try list(kind, provider)
    var listed: Set<RecordIdentifier> = []
    for part in Self.directory { listed.formUnion(try directory(part, in: cells).records) }
    // Rows of kinds that the directory does not list, and rows that were set back.
    for case (.record(let identifier), .faulty) in cells { listed.insert(identifier) }
    return listed.filter { identifier in
      guard identifier.kind == kind, provider == nil || identifier.provider == provider, !known.contains(identifier)
      else { return false }
      if case .cell(let stored)? = cells[.record(identifier)], stored.cell.record != nil { return false }
      return true
    }.sorted { ($0.provider, $0.account) < ($1.provider, $1.account) }
  }

  package func isLost(_ identifier: RecordIdentifier) throws(StoreError) -> Bool {
    let name = CellName(identifier)
    guard let part = CellName.directory(of: identifier) else {
      if case .faulty? = try fetch([name])[name] { return true }
      return false
    }
    let cells = try fetch([name, part])
    if case .cell(let stored)? = cells[name], stored.cell.record != nil { return false }
    if case .faulty? = cells[name] { return true }
    return try directory(part, in: cells).records.contains(identifier)
  }

  /// Refuses records that the directory of the same moment does not list: rows from before they were removed, or from
  /// another history. Also refuses to be without a record that it lists.
  func compared(_ cells: [CellName: Loaded]) -> [CellName: Loaded] {
    var parts: [CellName: Result<Directory, StoreError>] = [:]
    var compared = cells
    for (name, loaded) in cells {
      guard let identifier = name.identifier, let part = name.part else { continue }
      let stored: Stored?
      switch loaded {
      case .cell(let cell) where cell.cell.record != nil: stored = cell
      case .absent: stored = nil
      case .cell, .faulty: continue
      }
      let known = parts[part] ?? Result { () throws(StoreError) in try directory(part, in: cells) }
      parts[part] = known
      switch known {
      case .success(let directory):
        let isListed = directory.records.contains(identifier)
        if let stored, !isListed {
          compared[name] = .faulty(server.fault(.setBack(identifier)), revision: stored.mark.revision)
        } else if stored == nil, isListed {
          compared[name] = .faulty(.damagedRecord(identifier), revision: 0)
        }
      case .failure(let error): compared[name] = .faulty(error, revision: stored?.mark.revision ?? 0)
      }
    }
    return compared
  }

  /// A part of the directory, which exists since the vault was created.
  func directory(_ part: CellName, in cells: [CellName: Loaded]) throws(StoreError) -> Directory {
    switch cells[part] {
    case .cell(let stored):
      do throws(CryptographyError) { return try Directory(stored.cell.record?.payload) } catch {
        throw server.fault(.altered)
      }
    case .faulty(let error, _): throw error
    case .absent, nil: throw server.fault(.altered)
    }
  }

  package func snapshot<Value, Failure: Error>(
    _ body: () throws(Failure) -> Value
  ) throws(StoreError) -> Result<Value, Failure> {
    view = View()
    let result: Result<Value, Failure>
    do throws(Failure) { result = .success(try body()) } catch { result = .failure(error) }
    let isTransaction = view?.isTransaction == true
    view = nil
    knowsAllSeen = false
    if isTransaction { server.endReading() }
    saveSeenUnlessBusy()
    return result
  }
}

extension TeamVault.Stored {
  func record(_ identifier: RecordIdentifier) -> Record? {
    let part = identifier.kind == .pending ? cell.note : cell.record
    return part.map { Record(identifier: identifier, payload: $0.payload, revision: $0.revision) }
  }
}
