/// Numbers with a unit, as configuration files have them.
enum Quantity {
    private static let byteUnits: [(String, Double)] = [
        ("TiB", 1_099_511_627_776), ("GiB", 1_073_741_824), ("MiB", 1_048_576), ("KiB", 1024), ("B", 1), ("", 1),
    ]
    private static let durationUnits: [(String, Double)] = [
        ("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600), ("d", 86_400), ("", 1),
    ]

    /// Bytes: `20MiB`, `1.5 GiB`, `1048576`. Nil for anything else, and for what an `Int` does not hold.
    static func bytes(_ text: String) -> Int? {
        value(text, byteUnits).flatMap { $0 < 9e18 ? Int($0) : nil }
    }

    /// A time: `500ms`, `10s`, `5m`, `1h`, `7d`, `90`. Nil for anything else, and beyond a hundred years.
    static func duration(_ text: String) -> Duration? {
        value(text, durationUnits).flatMap { $0 < 3.2e9 ? .milliseconds(Int64(($0 * 1000).rounded())) : nil }
    }

    private static func value(_ text: String, _ units: [(String, Double)]) -> Double? {
        let digits = text.prefix { $0.isNumber || $0 == "." }
        let unit = text.dropFirst(digits.count).drop { $0 == " " }
        guard let number = Double(digits), number >= 0, let factor = units.first(where: { $0.0 == unit })?.1 else {
            return nil
        }
        return number * factor
    }
}
