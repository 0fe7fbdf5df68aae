/// Explores every state of the protocol, the nearest first.
struct Search {
  private(set) var worlds: [World] = []
  private var keys: [Key] = []
  private var parents: [Int32] = []
  private var edges: [(from: Int32, to: Int32)] = []
  private var table: [Int32]
  private(set) var finished: [Int32] = []

  init() { table = Array(repeating: -1, count: 1 << 12) }

  /// The shortest trace to a violation, or `nil` if every reachable state is right.
  mutating func violation(of mutation: Mutation?, within budget: Budget) -> (Violation, [World])? {
    _ = add(World(budget), from: -1)
    var next = 0
    while next < worlds.count {
      let world = worlds[next]
      let from = Int32(next)
      var moves = Moves(world, mutation)
      moves.all()
      for index in 0..<moves.results.count {
        if let violation = moves.results[index].violation {
          return (violation, trace(from) + [moves.results[index].world])
        }
        edges.append((from, add(moves.results[index].world, from: from)))
      }
      next += 1
    }
    return stuck().map { (.stuck, trace($0)) }
  }

  private mutating func add(_ world: World, from: Int32) -> Int32 {
    if worlds.count * 2 >= table.count { grow() }
    let key = world.key
    var slot = place(of: key)
    while table[slot] >= 0 {
      if keys[Int(table[slot])] == key { return table[slot] }
      slot = (slot + 1) & (table.count - 1)
    }
    table[slot] = Int32(worlds.count)
    worlds.append(world)
    keys.append(key)
    parents.append(from)
    if world.isFinished { finished.append(table[slot]) }
    return table[slot]
  }

  private func place(of key: Key) -> Int {
    var hash = (key.first &* 0x9E37_79B9_7F4A_7C15) ^ (key.second &* 0xC2B2_AE3D_27D4_EB4F)
    hash ^= hash >> 29
    return Int(truncatingIfNeeded: hash &* 0x1656_67B1_9E37_79F9 >> 20) & (table.count - 1)
  }

  private mutating func grow() {
    table = Array(repeating: -1, count: table.count * 4)
    for index in worlds.indices {
      var slot = place(of: keys[index])
      while table[slot] >= 0 { slot = (slot + 1) & (table.count - 1) }
      table[slot] = Int32(index)
    }
  }

  private func trace(_ last: Int32) -> [World] {
    var path: [World] = []
    var index = last
    while index >= 0 {
      path.append(worlds[Int(index)])
      index = parents[Int(index)]
    }
    return path.reversed()
  }

  /// A state from which no sequence of steps lets all machines finish.
  private func stuck() -> Int32? {
    var counts = Array(repeating: Int32(0), count: worlds.count + 1)
    for edge in edges { counts[Int(edge.to) + 1] += 1 }
    for index in 1..<counts.count { counts[index] += counts[index - 1] }
    var sources = Array(repeating: Int32(0), count: edges.count)
    var filled = counts
    for edge in edges {
      sources[Int(filled[Int(edge.to)])] = edge.from
      filled[Int(edge.to)] += 1
    }
    var isGood = Array(repeating: false, count: worlds.count)
    var open = finished
    for index in open { isGood[Int(index)] = true }
    while let index = open.popLast() {
      for place in counts[Int(index)]..<counts[Int(index) + 1] where !isGood[Int(sources[Int(place)])] {
        isGood[Int(sources[Int(place)])] = true
        open.append(sources[Int(place)])
      }
    }
    return isGood.firstIndex(of: false).map(Int32.init)
  }
}
