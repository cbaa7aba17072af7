internal import HTTP

/// How long a purge waits for the nodes of a cluster: `wait` in the query or in the field `Prefer` (RFC 7240 section 4.3), such as
/// `wait=30s`.
enum PurgeWait {
    private static let longest: Duration = .seconds(300)

    /// The time in a query.
    static func duration(_ text: String) throws(Problem) -> Duration {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let units: [Substring: Duration] = ["ms": .milliseconds(1), "s": .seconds(1), "": .seconds(1), "m": .seconds(60)]
        guard (1...6).contains(digits.count), let number = Int(digits), let unit = units[text[digits.endIndex...]],
            unit * number <= longest
        else { throw .badRequest("wait must be a time from 0s to 300s, such as 30s.") }
        return unit * number
    }

    /// The time that the client prefers, bounded; nil without such a preference.
    static func preferred(_ request: borrowing HTTPRequest) -> Duration? {
        var seconds: Int?
        request.forEachValue(of: "Prefer") { value in
            for member in FieldList(value) {
                let item = FieldElement(member).value
                let prefix = RouteParser.waitName.utf8.count + 1
                guard item.count > prefix, item.slice(0..<prefix).equalsIgnoringCase("wait="),
                    let number = item.slice(prefix..<item.count).decimal
                else { continue }
                seconds = seconds ?? Int(clamping: number)
            }
        }
        return seconds.map { min(.seconds(min($0, 1_000_000)), longest) }
    }
}
