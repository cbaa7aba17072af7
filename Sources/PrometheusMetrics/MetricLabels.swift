/// The labels of one series as the text between the braces: `route="mp4",status="200"`.
struct MetricLabels: Sendable, Hashable, Comparable {
    let text: String

    init(_ pairs: [(String, String)]) {
        text = pairs.map { "\($0)=\"\(Self.escaped($1))\"" }.joined(separator: ",")
    }

    /// The labels with another one, such as `le` of a bucket.
    func adding(_ name: String, _ value: String) -> String {
        text.isEmpty ? "\(name)=\"\(value)\"" : "\(text),\(name)=\"\(value)\""
    }

    /// Escapes backslashes, quotes and line ends, as both formats require.
    private static func escaped(_ value: String) -> String {
        guard value.contains(where: { $0 == "\\" || $0 == "\"" || $0.isNewline }) else { return value }
        return value.reduce(into: "") { text, character in
            switch character {
            case "\\": text += "\\\\"
            case "\"": text += "\\\""
            case _ where character.isNewline: text += "\\n"
            default: text.append(character)
            }
        }
    }

    static func < (left: MetricLabels, right: MetricLabels) -> Bool { left.text < right.text }
}
