internal import SystemIO

/// A page of the response to ListObjectsV2.
struct S3ListPage: Equatable, Sendable {
    struct Entry: Equatable, Sendable {
        let key: String
        let length: Int
        /// Seconds since 1970.
        let modified: Int64
    }

    let entries: [Entry]
    /// The token with which to ask for the next page; nil on the last one.
    let nextToken: String?

    /// Reads the element `ListBucketResult`; nil if a value is missing or out of range.
    init?(_ root: XMLElement) {
        guard root.name == "ListBucketResult" else { return nil }
        var entries: [Entry] = []
        for content in root.children where content.name == "Contents" {
            guard let key = content.text("Key"), let length = content.text("Size").flatMap({ Int($0) }), length >= 0,
                let modified = content.text("LastModified").flatMap({ Self.seconds(iso8601: $0) })
            else { return nil }
            entries.append(Entry(key: key, length: length, modified: modified))
        }
        self.entries = entries
        let isTruncated = root.text("IsTruncated") == "true"
        nextToken = isTruncated ? root.text("NextContinuationToken") : nil
        // Without a token the rest cannot be requested, and its objects would seem not to exist.
        if isTruncated, nextToken == nil { return nil }
    }

    /// Reads a time in UTC such as `2026-11-22T06:44:00.707Z`, without its fraction of a second.
    static func seconds(iso8601 text: String) -> Int64? {
        let bytes = Array(text.utf8)
        let separators: [(Int, Character)] = [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":")]
        guard bytes.count >= 20, bytes.last == UInt8(ascii: "Z"), separators.allSatisfy({ bytes[$0.0] == $0.1.asciiValue })
        else { return nil }
        func number(_ range: Range<Int>) -> Int? {
            let digits = bytes[range]
            guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        }
        guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10), let hour = number(11..<13),
            let minute = number(14..<16), let second = number(17..<19), (1...12).contains(month), (1...31).contains(day),
            hour < 24, minute < 60, second <= 60
        else { return nil }
        return Int64(((CivilTime.days(toYear: year, month: month, day: day) * 24 + hour) * 60 + minute) * 60 + second)
    }
}
