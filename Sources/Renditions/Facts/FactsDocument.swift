/// The body of `json` (API.md §1).
struct FactsDocument: Codable, Equatable {
    /// A GIF's facts and where it is from.
    struct Source: Codable, Equatable {
        /// Null for an upload.
        var url: String?
        var facts: SourceFacts

        private enum Key: String, CodingKey {
            case url
            case loopCount = "loop_count"
        }

        init(url: String?, facts: SourceFacts) {
            self.url = url
            self.facts = facts
        }

        init(from decoder: any Decoder) throws {
            url = try decoder.container(keyedBy: Key.self).decodeIfPresent(String.self, forKey: .url)
            facts = try SourceFacts(from: decoder)
        }

        /// One object, in which «none» is null and not left out.
        func encode(to encoder: any Encoder) throws {
            try facts.encode(to: encoder)
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(url, forKey: .url)
            try container.encode(facts.loopCount, forKey: .loopCount)
        }
    }

    /// What is known of a rendition; of one that is not made yet, where it may be asked for.
    struct Rendition: Codable, Equatable {
        var url: String
        var bytes: Int64?
        var width: Int?
        var height: Int?
        /// In seconds; of a video.
        var duration: Double?
    }

    var source: Source
    /// By the format's name; with default options.
    var renditions: [String: Rendition]

    var encoded: [UInt8] { JSONText.encode(self) }
}
