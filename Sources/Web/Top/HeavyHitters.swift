/// The keys with the largest sums, in bounded memory: the space-saving algorithm (Metwally, Agrawal and El Abbadi, 2005).
///
/// If the table is full, a new key replaces the key with the smallest sum and inherits that sum as its possible error. Any key
/// whose sum exceeds the total divided by the limit is among the entries. Not synchronised.
struct HeavyHitters: Sendable {
    struct Sum: Sendable, Equatable {
        var amount: Int64
        /// The maximum by which the amount may be too large.
        var error: Int64 = 0
    }

    private(set) var sums: [String: Sum] = [:]
    private let limit: Int

    /// - Parameter limit: The largest number of keys; at least 1.
    init(limit: Int) {
        self.limit = max(1, limit)
    }

    /// Adds an amount, at least 0, to the sum of a key.
    mutating func add(_ amount: Int64, to key: String) {
        if let index = sums.index(forKey: key) {
            sums.values[index].amount = Self.sum(sums.values[index].amount, amount)
            return
        }
        guard sums.count >= limit, let least = sums.min(by: { $0.value.amount < $1.value.amount }) else {
            sums[key] = Sum(amount: amount)
            return
        }
        sums[least.key] = nil
        sums[key] = Sum(amount: Self.sum(least.value.amount, amount), error: least.value.amount)
    }

    /// Adds the sums of another table. The result may have more keys than the limit.
    mutating func merge(_ other: HeavyHitters) {
        sums.merge(other.sums) { Sum(amount: Self.sum($0.amount, $1.amount), error: Self.sum($0.error, $1.error)) }
    }

    private static func sum(_ left: Int64, _ right: Int64) -> Int64 {
        let (sum, isOverflow) = left.addingReportingOverflow(right)
        return isOverflow ? .max : sum
    }
}
