internal import Media
internal import SystemIO

// The texts of option values.

/// Numbers in options: digits, for some options with a decimal point and more digits. They have no sign and no exponent.
package enum DecimalText {
    /// Parses a whole number of up to nine digits.
    package static func whole(_ text: some StringProtocol) -> Int? {
        // The product of a number of nine digits and a scale fits in an Int.
        text.utf8.count <= 9 && isDigits(text.utf8) ? Int(text) : nil
    }

    /// Parses a number and multiplies it by `scale`, a power of ten. The result is rounded to the nearest whole number.
    package static func scaled(_ text: String, by scale: Int) -> Int? {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let whole = whole(Substring(first)) else { return nil }
        if parts.count == 1 { return whole * scale }
        guard isDigits(parts[1]) else { return nil }
        var value = whole * scale
        var unit = scale
        for digit in parts[1].lazy.map({ Int($0 - UInt8(ascii: "0")) }) {
            if unit == 1 {
                // Rounds by the first dropped digit.
                return digit >= 5 ? value + 1 : value
            }
            unit /= 10
            value += digit * unit
        }
        return value
    }

    /// Returns the shortest text of `value` divided by `scale`, a power of ten.
    package static func text(_ value: Int, by scale: Int) -> String {
        var digits = String(scale + value % scale).dropFirst()
        while digits.last == "0" { digits.removeLast() }
        return digits.isEmpty ? String(value / scale) : "\(value / scale).\(digits)"
    }

    private static func isDigits(_ text: some Collection<UInt8>) -> Bool {
        !text.isEmpty && text.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}

protocol OptionWord: CaseIterable, Equatable, Sendable {
    var name: String { get }
}

extension SizeOptions.Fit: OptionWord {
    var name: String {
        switch self {
        case .contain: "contain"
        case .cover: "cover"
        case .fill: "fill"
        case .pad: "pad"
        }
    }
}

extension Gravity {
    /// The points that have names in options.
    static let names: [(name: String, gravity: Gravity)] = [
        ("center", .center), ("top", Gravity(x: 500, y: 0)), ("bottom", Gravity(x: 500, y: 1000)),
        ("left", Gravity(x: 0, y: 500)), ("right", Gravity(x: 1000, y: 500)), ("top-left", Gravity(x: 0, y: 0)),
        ("top-right", Gravity(x: 1000, y: 0)), ("bottom-left", Gravity(x: 0, y: 1000)),
        ("bottom-right", Gravity(x: 1000, y: 1000)),
    ]

    /// Parses a name, or `x:y` with numbers from 0 to 1, which are rounded to thousandths.
    init?(name: String) {
        if let named = Self.names.first(where: { $0.name == name }) {
            self = named.gravity
            return
        }
        let parts = name.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count == 2, let x = DecimalText.scaled(String(Substring(parts[0])), by: 1000),
            let y = DecimalText.scaled(String(Substring(parts[1])), by: 1000), x <= 1000, y <= 1000
        else { return nil }
        self.init(x: x, y: y)
    }

    var name: String {
        Self.names.first { $0.gravity == self }?.name
            ?? "\(DecimalText.text(x, by: 1000)):\(DecimalText.text(y, by: 1000))"
    }
}

extension VideoCodec: OptionWord {
    /// The codecs whose encoders are present.
    static let offered = allCases.filter(LinkedLibraries.has)

    var name: String { traits.name }
}

extension TranscodeOptions.Preset: OptionWord {
    var name: String {
        switch self {
        case .sticker: "sticker"
        }
    }
}

extension TranscodeOptions.Facts: OptionWord {
    var name: String {
        switch self {
        case .fingerprints: "fingerprints"
        case .flashes: "flashes"
        }
    }
}

extension TranscodeOptions.Tune: OptionWord {
    var name: String {
        switch self {
        case .automatic: "auto"
        case .film: "film"
        case .screen: "screen"
        case .pixel: "pixel"
        }
    }
}

extension TranscodeOptions.Undithering: OptionWord {
    var name: String {
        switch self {
        case .automatic: "auto"
        case .always: "1"
        case .never: "0"
        }
    }
}

extension TranscodeOptions.Chroma: OptionWord {
    var name: String {
        switch self {
        case .automatic: "auto"
        case .subsampled: "420"
        }
    }
}

extension TranscodeOptions.BFrames: OptionWord {
    var name: String {
        switch self {
        case .automatic: "auto"
        case .never: "0"
        }
    }
}

extension RGB {
    /// Parses `RRGGBB`.
    init?(hex: String) {
        guard hex.utf8.count == 6, hex.utf8.allSatisfy({ $0.hexDigit != nil }),
            let value = UInt32(hex, radix: 16)
        else { return nil }
        self.init(
            red: UInt8(truncatingIfNeeded: value >> 16), green: UInt8(truncatingIfNeeded: value >> 8),
            blue: UInt8(truncatingIfNeeded: value))
    }

    /// `rrggbb`, in lower case.
    var hex: String { Hex.encode([red, green, blue]) }
}
