internal import Glibc

/// The default name of a node: its host name.
package enum NodeName {
    /// The host name, truncated to 64 bytes, with each character except letters, digits, `.`, `_` and `-` replaced by `-`.
    package static var current: String {
        var buffer = [CChar](repeating: 0, count: 256)
        guard gethostname(&buffer, buffer.count - 1) == 0 else { return "node" }
        let bytes = buffer.prefix { $0 != 0 }.prefix(64).map { UInt8(bitPattern: $0) }
            .map { $0.isLetterOrDigit || "._-".utf8.contains($0) ? $0 : UInt8(ascii: "-") }
        return bytes.isEmpty ? "node" : String(decoding: bytes, as: UTF8.self)
    }
}
