internal import Glibc

/// The default name of a node: its host name.
package enum NodeName {
    /// The host name, truncated to 64 bytes, with each character except letters, digits, `.`, `_` and `-` replaced by `-`.
    package static var current: String {
        var buffer = [CChar](repeating: 0, count: 256)
        guard gethostname(&buffer, buffer.count - 1) == 0 else { return "node" }
        let bytes = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }.prefix(64).map { byte -> UInt8 in
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f: byte
            default: UInt8(ascii: "-")
            }
        }
        return bytes.isEmpty ? "node" : String(decoding: bytes, as: UTF8.self)
    }
}
