/// A page of the answer to ListObjectsV2.
struct S3ListPage: Equatable, Sendable {
    /// An object in a list.
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
        else {
            return nil
        }
        func number(_ range: Range<Int>) -> Int64? {
            var value: Int64 = 0
            for byte in bytes[range] {
                guard (0x30...0x39).contains(byte) else { return nil }
                value = value * 10 + Int64(byte - 0x30)
            }
            return value
        }
        guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10), let hour = number(11..<13),
            let minute = number(14..<16), let second = number(17..<19), (1...12).contains(month), (1...31).contains(day),
            hour < 24, minute < 60, second <= 60
        else { return nil }
        // Days since 1970-01-01, counted in years that begin in March, so that the leap day is a year's last day.
        let shifted = month > 2 ? (year, month - 3) : (year - 1, month + 9)
        let days =
            365 * shifted.0 + shifted.0 / 4 - shifted.0 / 100 + shifted.0 / 400 + (153 * shifted.1 + 2) / 5 + day - 1 - 719_468
        return days * 86_400 + hour * 3600 + minute * 60 + second
    }
}
