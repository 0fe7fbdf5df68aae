import Testing

/// Fails the test if the condition is false.
func require(_ condition: Bool, _ words: StaticString) {
  if !condition { Issue.record("does not hold: \(words)") }
}

/// Mutations in the same order at each run (SplitMix64).
private struct Mutations {
  var state: UInt64

  mutating func next(below bound: Int) -> Int {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return Int((z ^ (z >> 31)) % UInt64(max(bound, 1)))
  }

  /// Bytes that end, begin or separate parts of one of the formats.
  static let marks = Array("\0\t\n\r \"#%&'*,-./:;<=>?@[\\]{|}~+0eE9\u{7F}".utf8) + [0x80, 0xC3, 0xED, 0xFF]

  mutating func mutate(_ bytes: [UInt8]) -> [UInt8] {
    var bytes = bytes
    for _ in 0...next(below: 3) {
      let place = next(below: bytes.count)
      let length = next(below: min(bytes.count - place, 16))
      switch next(below: 6) {
      case 0 where !bytes.isEmpty: bytes[place] ^= UInt8(1 << next(below: 8))
      case 1 where !bytes.isEmpty: bytes.removeSubrange(place..<(place + length))
      case 2 where !bytes.isEmpty:
        bytes.insert(contentsOf: bytes[place..<(place + length)], at: next(below: bytes.count))
      case 3 where !bytes.isEmpty: bytes.removeLast(length)
      default: bytes.insert(Self.marks[next(below: Self.marks.count)], at: place)
      }
    }
    return bytes
  }
}

@Suite("Parsers of outside input") struct FuzzedParsersTests {
  @Test("meet their requirements for two hundred mutations of each seed", arguments: fuzzedSeeds.keys.sorted())
  func mutations(of name: String) throws {
    let parser = try #require(fuzzedParsers[name])
    let seeds = try #require(fuzzedSeeds[name])
    for seed in seeds {
      parser(Array(seed.utf8))
      var mutations = Mutations(state: 1)
      for _ in 0..<200 { parser(mutations.mutate(Array(seed.utf8))) }
    }
  }

  @Test("have seeds, except the one with our own format") func seeds() {
    #expect(Set(fuzzedParsers.keys).subtracting(fuzzedSeeds.keys) == ["credential"])
    #expect(Set(fuzzedSeeds.keys).isSubset(of: fuzzedParsers.keys))
  }
}
