extension SharedPrewarm {
    /// What became of an entry.
    package enum Outcome: Sendable, Equatable {
        /// The rendition exists: whether it did before, its size, and the bytes by which it is smaller than its source.
        case made(isHit: Bool, bytes: Int64, saved: Int64)
        case failed(Failure)
    }

    /// Why an entry has no rendition.
    package struct Failure: Sendable, Equatable, Codable {
        private static let kind = UInt8(ascii: "F")
        private static let maxTextBytes = 1024
        /// The largest length of a source's URL.
        private static let maxURLBytes = 8192

        /// The source's URL as the entry spells it; empty if it is unknown.
        package let url: String
        /// A stable word for programs.
        package let code: String
        /// A sentence.
        package let detail: String

        package init(url: String, code: String, detail: String) {
            self.url = url
            self.code = code
            self.detail = detail
        }

        var bytes: [UInt8] {
            var writer = FieldWriter(kind: Self.kind)
            writer.append(Self.bounded(url, to: Self.maxURLBytes))
            writer.append(Self.bounded(code, to: Self.maxTextBytes))
            writer.append(Self.bounded(detail, to: Self.maxTextBytes))
            return writer.bytes
        }

        /// Nil for bytes that are no failure.
        init?(_ bytes: [UInt8]) {
            guard var reader = FieldReader(bytes, kind: Self.kind), let url = reader.text(), let code = reader.text(),
                let detail = reader.text()
            else { return nil }
            self.init(url: url, code: code, detail: detail)
        }

        private static func bounded(_ text: String, to limit: Int) -> String {
            text.utf8.count <= limit ? text : String(decoding: text.utf8.prefix(limit), as: UTF8.self)
        }
    }
}
