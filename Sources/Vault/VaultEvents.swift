import Cryptography
import Platform

/// An event as it stands in the log.
public struct LoggedEvent: Sendable {
  /// What it is about.
  public let series: EventSeries
  /// Events of a series are numbered from 0; a number that is missing between others is an event that was lost. `nil`
  /// for a hand-out that the vault has not taken in yet.
  public let number: Int64?
  /// What was noted; the vault does not look into it.
  public let payload: Secret
}

extension Vault {
  /// Notes that something was handed out: takes some microseconds, waits for nobody, and changes nothing in the vault's
  /// file. An event of more than 2048 bytes is not noted.
  ///
  /// - Throws: `.file` if the file beside the vault cannot be written.
  public func noteHandOut(_ event: Secret) throws(VaultError) {
    guard event.count <= HandOutJournal.eventLimit else { return }
    try HandOutJournal(location).append(event, openingKeys, random: random)
  }

  /// How many lines of the hand-outs that the vault has not taken in yet cannot be read: one that a killed process has
  /// begun, or what somebody else wrote.
  ///
  /// - Throws: `.file` when there is something else in the place of the file, so that nothing can be noted; and as
  ///   `record(_:)` does.
  public func unreadableHandOuts() throws(VaultError) -> Int {
    let path = HandOutJournal(location).path
    let bytes = try converting { () throws(POSIXError) in try JournalFile.read(path) }
    return try transaction(.deferred) { keys throws(VaultError) in HandOutJournal.unreadableCount(bytes, keys) }
  }

  /// The last thousand events of each series, the oldest first.
  ///
  /// - Throws: as `record(_:)` does. A page of the log that is damaged is left out.
  public func events() throws(VaultError) -> [LoggedEvent] {
    let journal = HandOutJournal(location)
    return try transaction(.deferred) { keys throws(VaultError) in
      var events: [LoggedEvent] = []
      var drained: [UInt8] = []
      for series in EventSeries.allCases {
        let pages = try self.pages(series, keys)
        for page in pages {
          for (index, event) in page.events.enumerated() {
            events.append(LoggedEvent(series: series, number: page.first + Int64(index), payload: event))
          }
        }
        if series == .handOuts { drained = pages.last?.lastDrained ?? [] }
      }
      let pending = HandOutJournal.entries((try? JournalFile.read(journal.path)) ?? [], keys)
      return events
        + pending.following(drained).map { LoggedEvent(series: .handOuts, number: nil, payload: $0.event) }
    }
  }

  /// The pages of a series, the oldest first.
  private func pages(_ series: EventSeries, _ keys: VaultKeys) throws(VaultError) -> [EventPage] {
    let names =
      [EventPage.current(series)]
      + (0..<EventPage.pageCount).map {
        EventPage(series: series, first: $0 * EventPage.capacity).place
      }
    var pages: [EventPage] = []
    for name in names {
      guard let record = try row(keys.lookup(name))?.opened(keys), record.identifier == name,
        let page = EventPage(series: series, decoding: record.payload)
      else { continue }
      pages.append(page)
    }
    return pages.sorted { $0.first < $1.first }
  }

  /// The page that the next event goes to.
  func currentPage(_ series: EventSeries, _ keys: VaultKeys) throws(VaultError) -> EventPage {
    let name = EventPage.current(series)
    guard let row = try row(keys.lookup(name)) else { return EventPage(series: series, first: 0) }
    if let record = row.opened(keys), record.identifier == name,
      let page = EventPage(series: series, decoding: record.payload)
    {
      return page
    }
    // It is damaged, and what it held is lost. The numbers go on where it would have ended at the latest.
    let last = try pages(series, keys).last?.first ?? -EventPage.capacity
    return EventPage(series: series, first: last + 2 * EventPage.capacity)
  }
}

extension [HandOutJournal.Entry] {
  /// Those behind the one that was taken in last, if it is among them.
  func following(_ nonce: [UInt8]) -> ArraySlice<HandOutJournal.Entry> {
    guard let index = lastIndex(where: { $0.nonce == nonce }) else { return self[...] }
    return self[(index + 1)...]
  }
}

extension VaultChange {
  /// Notes an event, and takes in the hand-outs that were noted since the last change. What is to be kept must not be lost
  /// because the log is damaged: then nothing is noted.
  mutating func note(_ event: Secret) {
    guard event.count <= HandOutJournal.eventLimit else { return }
    takeHandOuts()
    append(event, .changes)
  }

  private mutating func append(_ event: Secret, _ series: EventSeries) {
    guard var page = writablePage(series) else { return }
    page.append(event)
    guard !page.isFull || (try? bucket(of: page.place)) != nil else { return }
    if page.isFull {
      pages[page.place] = page
      page = page.following
    }
    pages[EventPage.current(series)] = page
  }

  /// The page that the next event goes to, if it can be stored.
  private mutating func writablePage(_ series: EventSeries) -> EventPage? {
    guard (try? bucket(of: EventPage.current(series))) != nil else { return nil }
    return try? page(series)
  }

  private mutating func page(_ series: EventSeries) throws(VaultError) -> EventPage {
    if let page = pages[EventPage.current(series)] { return page }
    return try vault.currentPage(series, keys)
  }

  /// A journal that cannot be read is no reason not to change the vault. One that cannot be taken in is left where it is.
  private mutating func takeHandOuts() {
    guard taken == nil, let page = writablePage(.handOuts),
      let journal = try? JournalFile.take(HandOutJournal(vault.location).path)
    else { return }
    taken = journal
    let entries = HandOutJournal.entries(journal.bytes, keys)
    for entry in entries.following(page.lastDrained) { append(entry.event, .handOuts) }
    guard let last = entries.last, var page = writablePage(.handOuts) else { return }
    page.lastDrained = last.nonce
    pages[EventPage.current(.handOuts)] = page
  }
}
