internal import Foundation

/// JSON bodies.
package enum JSONText {
    /// The value as JSON with sorted keys and a newline at the end.
    package static func encode(_ value: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Only numbers that JSON has none for can fail, and there are none in our documents.
        let data = (try? encoder.encode(value)) ?? Data("{}".utf8)
        return Array(data) + [UInt8(ascii: "\n")]
    }
}
