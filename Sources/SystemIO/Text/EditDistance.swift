/// The number of changed, added, missing or swapped items between two texts (the Damerau–Levenshtein distance of adjacent swaps).
package func editDistance<Item: Equatable>(_ first: [Item], _ second: [Item]) -> Int {
    var rows = [Array(0...second.count)]
    for i in first.indices {
        var row = [i + 1]
        for j in second.indices {
            let replaced = rows[i][j] + (first[i] == second[j] ? 0 : 1)
            var least = min(replaced, rows[i][j + 1] + 1, row[j] + 1)
            if i > 0, j > 0, first[i] == second[j - 1], first[i - 1] == second[j] {
                least = min(least, rows[i - 1][j - 1] + 1)
            }
            row.append(least)
        }
        rows.append(row)
    }
    return rows[first.count][second.count]
}
