/// Request IDs: the client's own ID if it is usable, otherwise a generated one.
enum RequestID {
    /// Whether a client's ID is short and harmless in log lines and header fields.
    static func isUsable(_ bytes: UnsafeRawBufferPointer) -> Bool {
        (1...64).contains(bytes.count)
            && bytes.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
                case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: ":"): true
                default: false
                }
            }
    }

    static let length = 16

    /// Writes a number as ``length`` hexadecimal digits.
    static func write(_ number: UInt64, to target: UnsafeMutableRawPointer) {
        for index in 0..<length {
            let digit = UInt8(truncatingIfNeeded: number >> UInt64(60 - 4 * index)) & 15
            target.storeBytes(of: digit < 10 ? digit + 0x30 : digit + 0x57, toByteOffset: index, as: UInt8.self)
        }
    }
}

/// Generates numbers that do not repeat within a process and are unlikely to repeat across processes: a counter with a random
/// start, mixed by a bijection (the SplitMix64 finalizer), so that IDs of consecutive requests differ in all digits.
struct RequestIDGenerator {
    private var state = UInt64.random(in: .min ... .max)

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
