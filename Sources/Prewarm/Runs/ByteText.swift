/// Numbers for people.
enum ByteText {
    /// `812 B`, `1.2 MB`: powers of a thousand, as files are bought and sold.
    static func short(_ bytes: Int) -> String {
        var value = Double(bytes)
        for unit in ["B", "kB", "MB", "GB"] {
            if value < 999.5 { return unit == "B" ? "\(bytes) B" : "\(oneDecimal(value)) \(unit)" }
            value /= 1000
        }
        return "\(oneDecimal(value)) TB"
    }

    /// `0:07`, `12:30`, `3:05:00`.
    static func clock(_ seconds: Int) -> String {
        let (minutes, rest) = (seconds / 60, seconds % 60)
        let tail = rest < 10 ? "0\(rest)" : "\(rest)"
        guard minutes >= 60 else { return "\(minutes):\(tail)" }
        return "\(minutes / 60):\(minutes % 60 < 10 ? "0" : "")\(minutes % 60):\(tail)"
    }

    static func oneDecimal(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    /// Hundredths of the whole, without a fraction.
    static func percent(_ part: Int, of whole: Int) -> String {
        whole > 0 ? "\(Int((Double(part) * 100 / Double(whole)).rounded())) %" : "–"
    }

    /// The text with spaces before it, up to a width.
    static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
