internal import Media
internal import SystemIO

// Values of options as they are written.

extension SizeOptions.Fit {
    init?(name: String) {
        guard let fit = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = fit
    }

    /// As it stands in options.
    var name: String {
        switch self {
        case .contain: "contain"
        case .cover: "cover"
        case .fill: "fill"
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
    var hex: String { Hex.encode([red, green, blue]) }
}
