/// A way to break the protocol. The model must find a trace for each.
enum Mutation: CaseIterable {
  /// A commit checks the credential that it replaces, but not the lease.
  case commitWithoutLease
  /// A commit checks nothing.
  case commitWithoutCondition
  /// The server's clock ends a lease, and the standby's clock is ahead.
  case leaseByServerClock
  /// The primary does not wait for its standby.
  case asynchronousStandby
  /// A holder whose time is up still asks the provider.
  case lateHolderAsks
  /// A commit without a confirmation counts as soon as the database shows it.
  case confirmationByReading
  /// A waiting machine recognizes a lease by its number instead of a random value.
  case leaseByNumber
  /// The machines were copied, and so was the identifier by which they recognize their own leases.
  case copiedMachines
  /// The answer is not stored next to the local vault.
  case answerOnlyInMemory
  /// A machine forgets its earlier leases before a new one is confirmed.
  case earlierLeasesForgotten
  /// A change of the key ends all leases, also one that was taken over from its machine.
  case keyChangeEndsAnyLease
}

/// A broken property.
enum Violation: String {
  case raced = "asked the provider while another holder may still be talking to it"
  case lost = "a refresh token of the provider is stored nowhere, although its holder neither died nor was cut off"
  case spentAgain = "sent a used refresh token, although its holder neither died nor was cut off"
  case overwrote = "committed without the lease"
  case wentBack = "replaced a newer credential by an older one"
  case stuck = "a state from which the machines cannot finish"
}

/// How often the environment may do something bad in one run.
struct Budget {
  var crashes: UInt8 = 1
  /// Statements or answers that are lost.
  var losses: UInt8 = 1
  /// Restarts of a primary that has not passed its last commit on to the standby.
  var restarts: UInt8 = 1
  var failovers: UInt8 = 1
  /// Refresh tokens that the machines need one after the other.
  var expiries: UInt8 = 1
  /// Changes of the vault's key.
  var rekeys: UInt8 = 0
}

/// The account's row.
struct Row {
  /// Which refresh token the credential contains.
  var token: UInt8 = 0
  /// The random value of the lease; zero means free.
  var lease: UInt8 = 0
  /// The lease's number, which grows. Only `Mutation.leaseByNumber` uses it.
  var number: UInt8 = 0
  var isRefused = false
}

enum Step: UInt8 {
  case start, waiting, leased, noted, asking, answered, kept, unsure, done, login, setBack
}

struct Machine {
  var step = Step.start
  /// The lease that this machine holds or held last, or that it observes while it waits.
  var lease: UInt8 = 0
  var number: UInt8 = 0
  /// Whether a holder must no longer ask, or a waiting machine may take the lease.
  var isLate = false
  /// The token that this machine has.
  var token: UInt8 = 0
  /// The refresh token that is stored next to the local vault; zero means none.
  var kept: UInt8 = 0
  /// The leases that this machine asked for since the last one that was confirmed, and that one: a bit each. They are
  /// stored before the statement is sent.
  var own: UInt32 = 0

  func owns(_ lease: UInt8) -> Bool { lease > 0 && own & 1 << lease != 0 }

  /// Whether this machine has the answer of a provider that issued `token`.
  func has(_ token: UInt8) -> Bool {
    kept == token || step != .asking && isExchanging && self.token + 1 == token
  }

  /// Whether this machine has asked for its successor and is not finished.
  var isExchanging: Bool {
    switch step {
    case .asking, .answered, .kept, .unsure: true
    default: false
    }
  }
}

/// The machine that changes the key. It takes the lease, so that no other machine asks meanwhile, and ends it with the
/// change.
struct Administrator {
  enum Step: UInt8 { case idle, waiting, late, leased }

  var step = Step.idle
  var lease: UInt8 = 0
}

/// The state of three machines, an administrator, two servers and a provider that rotates refresh tokens and detects
/// their reuse.
struct World {
  var machines: [3 of Machine] = [Machine(), Machine(), Machine()]
  var primary = Row()
  var standby = Row()
  /// The refresh token that the provider accepts next.
  var current: UInt8 = 0
  /// Whether the provider has ended the login because a refresh token was used twice.
  var isEnded = false
  /// Whether an answer was lost for a documented reason: its holder died or was cut off before it stored the answer.
  var isExcused = false
  /// Whether a holder has an answer that it could not commit within the lease time.
  var isOverdue = false
  var administrator = Administrator()
  var left: Budget

  init(_ budget: Budget) { left = budget }
}

extension World {
  /// The state in 128 bits. Machines are interchangeable, and a lease matters only if a row contains it, so equivalent
  /// states get the same key.
  var key: Key {
    var shapes = [shape(machines[0]), shape(machines[1]), shape(machines[2])] as [3 of UInt64]
    if shapes[0] > shapes[1] { shapes.swapAt(0, 1) }
    if shapes[1] > shapes[2] { shapes.swapAt(1, 2) }
    if shapes[0] > shapes[1] { shapes.swapAt(0, 1) }
    var first = shape(primary) << 10 | shape(standby)
    first = first << 1 | (primary.lease == standby.lease ? 1 : 0)
    first = first << 2 | UInt64(current)
    first = first << 3 | (isEnded ? 4 : 0) | (isExcused ? 2 : 0) | (isOverdue ? 1 : 0)
    first = first << 4 | UInt64(left.crashes << 2 | left.losses)
    first = first << 4 | UInt64(left.restarts << 2 | left.failovers)
    first = first << 1 | UInt64(left.rekeys)
    first = first << 2 | UInt64(administrator.step.rawValue)
    first = first << 2 | (primary.lease > 0 && primary.lease == administrator.lease ? 2 : 0)
    first |= standby.lease > 0 && standby.lease == administrator.lease ? 1 : 0
    return Key(first: first, second: shapes[0] << 42 | shapes[1] << 21 | shapes[2])
  }

  /// A row in 10 bits, without its lease.
  private func shape(_ row: Row) -> UInt64 {
    UInt64(row.token) << 8 | UInt64(row.number) << 2 | (row.lease > 0 ? 2 : 0) | (row.isRefused ? 1 : 0)
  }

  /// A machine in 21 bits.
  private func shape(_ machine: Machine) -> UInt64 {
    var value = UInt64(machine.step.rawValue) << 6 | UInt64(machine.number)
    value = value << 1 | (machine.isLate ? 1 : 0)
    value = value << 4 | UInt64(machine.token << 2 | machine.kept)
    for row in 0..<2 {
      let lease = row == 0 ? primary.lease : standby.lease
      value = value << 2 | (lease > 0 && lease == machine.lease ? 2 : 0) | (machine.owns(lease) ? 1 : 0)
    }
    return value
  }
}

struct Key: Equatable {
  var first, second: UInt64
}
