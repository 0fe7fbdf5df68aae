/// The name in `known` that the user probably meant, or `nil`: at most two edits away, one for short names, none for
/// names of one or two letters.
///
/// - Parameter isShort: whether to correct names of two letters as well, such as names that users choose.
package func nearMiss(_ name: String, among known: some Sequence<String>, isShort: Bool = false) -> String? {
  let shortest = isShort ? 2 : 3
  let bound = name.count < shortest ? 0 : name.count <= 4 ? 1 : 2
  let wanted = Array(name.lowercased())
  return known.lazy.map { (distance: distance(wanted, Array($0.lowercased())), name: $0) }
    .filter { $0.distance <= bound || ($0.name.count > shortest && $0.name.hasPrefix(name) && name.count >= shortest) }
    .min { $0.distance < $1.distance }?.name
}

/// The number of insertions, deletions, replacements and swaps of neighbours between two words.
private func distance(_ left: [Character], _ right: [Character]) -> Int {
  var rows = [Array(0...right.count)]
  for (i, a) in left.enumerated() {
    var row = [i + 1]
    for (j, b) in right.enumerated() {
      var best = min(row[j] + 1, rows[i][j + 1] + 1, rows[i][j] + (a == b ? 0 : 1))
      if i > 0, j > 0, a == right[j - 1], left[i - 1] == b { best = min(best, rows[i - 1][j - 1] + 1) }
      row.append(best)
    }
    rows.append(row)
  }
  return rows[left.count][right.count]
}
