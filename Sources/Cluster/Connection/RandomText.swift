internal import SystemIO

/// Random texts that no other node and no other run uses.
enum RandomText {
    /// 32 hexadecimal digits.
    static func make() -> String {
        Hex.encode(UInt64.random(in: .min ... .max)) + Hex.encode(UInt64.random(in: .min ... .max))
    }
}
