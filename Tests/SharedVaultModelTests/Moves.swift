extension World {
  var isFinished: Bool {
    for index in 0..<3 {
      switch machines[index].step {
      case .done where machines[index].token == left.expiries: break
      case .login, .setBack: break
      default: return false
      }
    }
    return true
  }

  /// Whether the refresh token that the provider accepts next exists nowhere, for an undocumented reason.
  fileprivate var hasLost: Bool {
    if isEnded || isExcused || primary.token >= current { return false }
    for index in 0..<3 where machines[index].has(current) { return false }
    return true
  }
}

/// All that can happen next in one state.
struct Moves {
  private(set) var results: [(world: World, violation: Violation?)] = []
  private let world: World
  private let mutation: Mutation?

  init(_ world: World, _ mutation: Mutation?) {
    self.world = world
    self.mutation = mutation
    results.reserveCapacity(32)
  }

  mutating func all() {
    for machine in 0..<3 {
      switch world.machines[machine].step {
      case .start: look(machine)
      case .waiting: wait(machine)
      case .leased: note(machine)
      case .noted: ask(machine)
      case .asking: answer(machine)
      case .answered: keep(machine)
      case .kept: commit(machine)
      case .unsure: settle(machine)
      case .done: expire(machine)
      case .login, .setBack: break
      }
      crash(machine)
    }
    failOver()
    if world.left.rekeys > 0 { changeKey() }
  }

  private mutating func add(_ next: World, _ violation: Violation? = nil) {
    results.append((next, violation ?? (next.hasLost ? .lost : nil)))
  }

  // MARK: The servers

  /// Runs a statement that changes the row. Its machine learns of the success, or loses the connection before or after
  /// the change; a primary that restarts may show a change that its standby lacks.
  private mutating func write(
    _ before: World, _ change: (inout Row) -> Void, confirmed: (inout World) -> Void, unsure: (inout World) -> Void
  ) {
    var after = before
    change(&after.primary)
    let isWaiting = mutation != .asynchronousStandby
    if isWaiting { after.standby = after.primary }
    var known = after
    confirmed(&known)
    add(known)
    if before.left.losses > 0 {
      var lost = after
      lost.left.losses -= 1
      unsure(&lost)
      add(lost)
      var failed = before
      failed.left.losses -= 1
      unsure(&failed)
      add(failed)
    }
    if isWaiting, before.left.restarts > 0 {
      var alone = after
      alone.standby = before.standby
      alone.left.restarts -= 1
      unsure(&alone)
      add(alone)
    }
  }

  private mutating func failOver() {
    guard world.left.failovers > 0 else { return }
    var next = world
    next.left.failovers -= 1
    next.primary = next.standby
    add(next)
  }

  // MARK: The administrator

  /// An administrator who dies leaves the lease, and others take it over.
  private mutating func changeKey() {
    let (row, administrator) = (world.primary, world.administrator)
    var next = world
    switch administrator.step {
    case .idle where row.lease == 0: leaseForKey()
    case .idle:
      next.administrator = Administrator(step: .waiting, lease: row.lease)
      add(next)
    case .waiting where row.lease == administrator.lease:
      next = leaseTimePassed(of: administrator.lease, before: nil)
      next.administrator.step = .late
      add(next)
    case .late where row.lease == administrator.lease: leaseForKey()
    case .leased where row.lease == 0 || row.lease == administrator.lease || mutation == .keyChangeEndsAnyLease:
      next.left.rekeys -= 1
      write(
        next, { $0.lease = 0 }, confirmed: { $0.administrator.step = .idle },
        unsure: { $0.administrator.step = .idle })
    case .waiting, .late, .leased:
      next.administrator.step = .idle
      add(next)
    }
    guard administrator.step == .leased, world.left.crashes > 0 else { return }
    next = world
    next.left.crashes -= 1
    next.left.rekeys = 0
    next.administrator.step = .idle
    add(next)
  }

  private mutating func leaseForKey() {
    let fresh = world.unusedLease
    write(
      world, { $0.lease = fresh },
      confirmed: { $0.administrator = Administrator(step: .leased, lease: fresh) },
      unsure: { $0.administrator.step = .idle })
  }

  // MARK: One machine

  private mutating func look(_ index: Int) {
    let machine = world.machines[index]
    let row = world.primary
    if row.token < machine.token {
      var next = world
      next.machines[index].step = .setBack
      add(next)
    } else if row.token > machine.token {
      take(index)
    } else if row.isRefused, machine.kept == 0 {
      var next = world
      next.machines[index].step = .login
      add(next)
    } else if row.lease == 0 || machine.owns(row.lease) || mutation == .copiedMachines {
      lease(index)
    } else {
      observe(index)
    }
  }

  private mutating func observe(_ index: Int) {
    var next = world
    next.machines[index].step = .waiting
    next.machines[index].lease = world.primary.lease
    next.machines[index].number = world.primary.number
    next.machines[index].isLate = false
    add(next)
  }

  /// Uses the token of another machine, or of this machine's own commit. An answer next to the vault is removed after a
  /// statement that waits for the standby, because the database may show a commit that a failover loses.
  private mutating func take(_ index: Int) {
    let finish = { (next: inout World) in
      next.machines[index].token = next.primary.token
      next.machines[index].kept = 0
      next.machines[index].step = .done
    }
    if world.machines[index].kept == 0 || mutation == .confirmationByReading {
      var next = world
      finish(&next)
      add(next)
    } else {
      write(world, { _ in }, confirmed: finish, unsure: { $0.machines[index].step = .start })
    }
  }

  private mutating func lease(_ index: Int) {
    var next = world
    let fresh = next.unusedLease
    let earlier = mutation == .earlierLeasesForgotten ? 0 : next.machines[index].own
    next.machines[index].own = earlier | 1 << fresh
    let number = mutation == .leaseByNumber ? world.primary.number + 1 : 0
    write(
      next,
      {
        $0.lease = fresh
        $0.number = number
      },
      confirmed: {
        let kept = $0.machines[index].kept
        $0.machines[index].own = 1 << fresh
        $0.machines[index].lease = fresh
        $0.machines[index].number = number
        $0.machines[index].isLate = false
        $0.machines[index].step = kept == $0.primary.token + 1 ? .kept : .leased
      }, unsure: { $0.machines[index].step = .start })
  }

  private func isSeen(_ index: Int) -> Bool {
    let machine = world.machines[index]
    return mutation == .leaseByNumber
      ? world.primary.lease != 0 && world.primary.number == machine.number : world.primary.lease == machine.lease
  }

  private mutating func wait(_ index: Int) {
    let machine = world.machines[index]
    let isRefused = world.primary.isRefused && machine.kept == 0
    if world.primary.token != machine.token || isRefused || !isSeen(index) {
      var next = world
      next.machines[index].step = .start
      add(next)
    } else if machine.isLate {
      lease(index)
    } else {
      // Numbers grow without an end, so the search of that mutation needs one.
      if world.primary.number < 4 { add(waited(index)) }
      // The standby's clock is an hour ahead.
      if mutation == .leaseByServerClock, world.left.failovers == 0 {
        var next = world
        next.machines[index].isLate = true
        add(next)
      }
    }
  }

  /// The lease time passes on the waiting machine's clock. The holder took its lease before, so its own shorter time is
  /// over as well: it has ended its request.
  private func waited(_ index: Int) -> World {
    var next = leaseTimePassed(of: world.machines[index].lease, before: index)
    next.machines[index].isLate = true
    return next
  }

  private func leaseTimePassed(of lease: UInt8, before index: Int?) -> World {
    var next = world
    for other in 0..<3 where other != index && next.machines[other].holds(lease) {
      if next.machines[other].step != .waiting { next.machines[other].isLate = true }
      if next.primary.token < next.current, next.machines[other].has(next.current) { next.isOverdue = true }
      if next.machines[other].step == .asking { next.machines[other].step = .start }
    }
    return next
  }

  private mutating func note(_ index: Int) {
    guard world.primary.lease == world.machines[index].lease else { return restart(index) }
    write(
      world, { _ in }, confirmed: { $0.machines[index].step = .noted }, unsure: { $0.machines[index].step = .start })
  }

  private mutating func restart(_ index: Int) {
    var next = world
    next.machines[index].step = .start
    add(next)
  }

  private mutating func ask(_ index: Int) {
    let machine = world.machines[index]
    if machine.isLate, mutation != .lateHolderAsks { return restart(index) }
    var violation: Violation?
    for other in 0..<3 where other != index && world.machines[other].token == machine.token {
      if world.machines[other].isExchanging, !world.machines[other].isLate { violation = .raced }
    }
    var next = world
    next.machines[index].step = .asking
    add(next, violation)
    guard world.left.losses > 0 else { return }
    restart(index)
    results[results.count - 1].world.left.losses -= 1
  }

  /// The provider gets the request.
  private mutating func answer(_ index: Int) {
    var next = world
    let token = world.machines[index].token
    if !world.isEnded, token == world.current {
      next.current += 1
      next.machines[index].step = .answered
      add(next)
      guard world.left.losses > 0 else { return }
      next.left.losses -= 1
      next.isExcused = true
      next.machines[index].step = .start
      return add(next)
    }
    let violation: Violation? = world.isEnded || world.isExcused || world.isOverdue ? nil : .spentAgain
    next.isEnded = true
    if next.primary.lease == next.machines[index].lease {
      next.primary.isRefused = true
      next.primary.lease = 0
      if mutation != .asynchronousStandby { next.standby = next.primary }
    }
    next.machines[index].step = .login
    add(next, violation)
  }

  private mutating func keep(_ index: Int) {
    var next = world
    if mutation != .answerOnlyInMemory { next.machines[index].kept = world.machines[index].token + 1 }
    next.machines[index].step = .kept
    add(next)
  }

  private mutating func commit(_ index: Int) {
    let machine = world.machines[index]
    let holds = world.primary.lease == machine.lease
    let replaces = world.primary.token == machine.token
    let isAllowed =
      switch mutation {
      case .commitWithoutLease: replaces
      case .commitWithoutCondition: true
      default: holds && replaces
      }
    guard isAllowed else { return restart(index) }
    let count = results.count
    write(
      world,
      {
        $0.token = machine.token + 1
        $0.isRefused = false
        $0.lease = 0
      },
      confirmed: {
        $0.machines[index].token = machine.token + 1
        $0.machines[index].kept = 0
        $0.machines[index].step = .done
        ($0.isExcused, $0.isOverdue) = (false, false)
      }, unsure: { $0.machines[index].step = .unsure })
    if !holds || world.primary.token > machine.token {
      for place in count..<results.count { results[place].violation = holds ? .wentBack : .overwrote }
    }
  }

  /// Finds out whether a commit took effect.
  private mutating func settle(_ index: Int) {
    let machine = world.machines[index]
    if world.primary.token > machine.token {
      take(index)
    } else if world.primary.lease == machine.lease {
      var next = world
      next.machines[index].step = .kept
      add(next)
    } else {
      restart(index)
    }
  }

  private mutating func expire(_ index: Int) {
    if world.machines[index].token < world.left.expiries { restart(index) }
  }

  /// A process dies, and another one of the same machine continues.
  private mutating func crash(_ index: Int) {
    guard world.left.crashes > 0 else { return }
    var next = world
    switch world.machines[index].step {
    case .done, .login, .setBack, .start: return
    case .answered: next.isExcused = true
    default: break
    }
    next.left.crashes -= 1
    next.machines[index].step = .start
    next.machines[index].isLate = false
    add(next)
  }
}

extension World {
  /// A lease that no row and no machine knows.
  fileprivate var unusedLease: UInt8 {
    var used: UInt32 = 1 | 1 << primary.lease | 1 << standby.lease | 1 << administrator.lease
    for index in 0..<3 { used |= machines[index].own | 1 << machines[index].lease }
    return UInt8((~used).trailingZeroBitCount)
  }
}

extension Machine {
  fileprivate func holds(_ lease: UInt8) -> Bool { step != .waiting && self.lease == lease || owns(lease) }
}
