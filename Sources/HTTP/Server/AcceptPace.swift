/// How many connections a loop accepts in a turn: one, and twice as many with each turn in a row. To ask for one when nobody
/// waits makes the kernel make a socket and throw it away, and the listener reports again while somebody does.
struct AcceptPace {
    static let most = 64

    private var count = 1
    private var lastTurn: UInt64?

    /// - Parameter turn: The loop's turns are numbered one after the other.
    mutating func next(turn: UInt64) -> Int {
        if let lastTurn, turn &- lastTurn <= 1 { count = min(count * 2, Self.most) } else { count = 1 }
        lastTurn = turn
        return count
    }
}
