import Testing

/// Checks the exchange of docs/shared-vault.md: three machines, an administrator who changes the key, a primary, a
/// standby, and a provider that rotates refresh tokens and detects reuse. The tests explore every interleaving, with
/// every place of a bounded number of failures.
@Suite struct SharedVaultModelTests {
  static let budgets = [
    Budget(), Budget(crashes: 0, restarts: 1, failovers: 1, expiries: 2),
    Budget(crashes: 2, losses: 2, restarts: 0, failovers: 0),
    Budget(crashes: 1, losses: 1, restarts: 0, failovers: 0, rekeys: 1),
    Budget(crashes: 0, losses: 0, restarts: 1, failovers: 1, rekeys: 1),
  ]

  @Test(arguments: budgets.indices) func everyRunIsRight(index: Int) {
    var search = Search()
    let found = search.violation(of: nil, within: Self.budgets[index])
    #expect(found == nil, "\(found?.0.rawValue ?? ""):\n\(described(found?.1 ?? []))")
    #expect(search.worlds.count > 5_000)
  }

  /// The program remembers only the last 64 of its leases that were not confirmed, and the model all of them. A limit
  /// in the model would not be reached: only a statement whose answer is lost makes a machine remember one more, so
  /// there are at most as many as the budget has losses and restarts, and the next one.
  @Test(arguments: budgets.indices) func noMachineRemembersManyLeases(index: Int) {
    var search = Search()
    let budget = Self.budgets[index]
    _ = search.violation(of: nil, within: budget)
    let most = search.worlds.map { world in (0..<3).map { world.machines[$0].own.nonzeroBitCount }.max() ?? 0 }.max()
    #expect(most ?? 0 <= 1 + Int(budget.losses) + Int(budget.restarts))
  }

  @Test(arguments: Mutation.allCases) func everyMutationIsFound(mutation: Mutation) {
    var search = Search()
    #expect(search.violation(of: mutation, within: Budget(rekeys: mutation == .keyChangeEndsAnyLease ? 1 : 0)) != nil)
  }

  private func described(_ trace: [World]) -> String {
    trace.map { world in
      let machines = (0..<3).map { index in
        let machine = world.machines[index]
        let late = machine.isLate ? " late" : ""
        return "\(machine.step)(lease \(machine.lease)\(late), token \(machine.token), kept \(machine.kept))"
      }
      return "\(machines.joined(separator: " ")) \(world.primary) \(world.standby) provider \(world.current)"
    }.joined(separator: "\n")
  }
}
