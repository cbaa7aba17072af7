/// Random texts that no other node and no other run uses.
enum RandomText {
    /// 32 hexadecimal digits.
    static func make() -> String {
        (0..<2).map { _ in
            let digits = String(UInt64.random(in: .min ... .max), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }
}
