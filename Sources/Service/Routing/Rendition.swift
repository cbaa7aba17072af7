package import Media

/// One output that can be made of a GIF: a format and its options (API.md §1).
package struct Rendition: Sendable, Hashable {
    /// What is made.
    package enum Format: String, Sendable, CaseIterable {
        case mp4

        /// The media type.
        var contentType: String {
            switch self {
            case .mp4: "video/mp4"
            }
        }
    }

    package var format: Format
    /// 1…100.
    package var quality: Int
    /// What transparent pixels are laid on.
    package var background: RGB

    package init(format: Format) {
        self.format = format
        quality = Self.defaultQuality
        background = .white
    }

    static let defaultQuality = 60

    /// The format and the options that are not the defaults, sorted by name: renditions are the same exactly when
    /// their texts are.
    package var canonicalText: String {
        var parts = [format.rawValue]
        if background != .white { parts.append("bg=\(background.hex)") }
        if quality != Self.defaultQuality { parts.append("quality=\(quality)") }
        return parts.joined(separator: ",")
    }

    /// What changes the bytes beside the source and the canonical text.
    var encoderVersion: String { H264Settings.version }

    /// Sets an option from its text.
    ///
    /// - Throws: ``Problem`` that names the option, when it is unknown or its value is out of range.
    mutating func set(_ name: String, to value: String) throws(Problem) {
        switch name {
        case "quality":
            guard let number = Int(value), (1...100).contains(number) else {
                throw .badOption(name, "must be a whole number from 1 to 100")
            }
            quality = number
        case "bg":
            guard let color = RGB(hex: value) else { throw .badOption(name, "must be a colour of six hexadecimal digits") }
            background = color
        default:
            throw .badOption(name, "is not known for \(format.rawValue)")
        }
    }
}

extension RGB {
    /// Parses `RRGGBB`.
    init?(hex: String) {
        guard hex.utf8.count == 6, hex.utf8.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit }),
            let value = UInt32(hex, radix: 16)
        else { return nil }
        self.init(
            red: UInt8(truncatingIfNeeded: value >> 16), green: UInt8(truncatingIfNeeded: value >> 8),
            blue: UInt8(truncatingIfNeeded: value))
    }

    /// `rrggbb`.
    var hex: String {
        let value = UInt32(red) << 16 | UInt32(green) << 8 | UInt32(blue)
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 6 - digits.count) + digits
    }
}
