internal import Foundation
package import Media
internal import SystemIO

/// The placeholder of a source in `json` (docs/api.md).
package struct FactsPlaceholder: Codable, Equatable, Sendable {
    /// `#rrggbb`.
    package var dominantColor: String
    /// In Base64.
    package var thumbhash: String

    private enum CodingKeys: String, CodingKey {
        case dominantColor = "dominant_color"
        case thumbhash
    }

    init(_ placeholder: Placeholder) {
        dominantColor = "#" + placeholder.dominantColor.hex
        thumbhash = Data(placeholder.thumbHash.bytes).base64EncodedString()
    }

    /// The hash; nil if the text is damaged.
    package var hash: ThumbHash? { Data(base64Encoded: thumbhash).flatMap { ThumbHash(Array($0)) } }

    var isInRange: Bool { dominantColor.hasPrefix("#") && RGB(hex: String(dominantColor.dropFirst())) != nil && hash != nil }
}
