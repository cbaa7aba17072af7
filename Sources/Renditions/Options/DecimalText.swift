/// Numbers in options: digits, and for some a point and more digits; no sign, no exponent.
package enum DecimalText {
    /// The whole number that the text is.
    package static func whole(_ text: some StringProtocol) -> Int? {
        // Nine digits fit into an Int, and into one that is multiplied by a scale.
        isDigits(text) && text.utf8.count <= 9 ? Int(text) : nil
    }

    /// The text's value times `scale`, a power of ten, rounded to the nearest.
    package static func scaled(_ text: String, by scale: Int) -> Int? {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let whole = whole(first) else { return nil }
        if parts.count == 1 { return whole * scale }
        guard isDigits(parts[1]) else { return nil }
        var value = whole * scale
        var unit = scale
        for digit in parts[1].utf8.map({ Int($0 - UInt8(ascii: "0")) }) {
            if unit == 1 {
                // The first digit that is left out decides.
                return digit >= 5 ? value + 1 : value
            }
            unit /= 10
            value += digit * unit
        }
        return value
    }

    /// The shortest text of `value` divided by `scale`, a power of ten.
    package static func text(_ value: Int, by scale: Int) -> String {
        var digits = String(scale + value % scale).dropFirst()
        while digits.last == "0" { digits.removeLast() }
        return digits.isEmpty ? String(value / scale) : "\(value / scale).\(digits)"
    }

    private static func isDigits(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}
