/// The body of `json` (docs/api.md).
package struct FactsDocument: Codable, Equatable {
    /// A GIF's facts and where it is from.
    package struct Source: Codable, Equatable {
        /// Null for an upload.
        package var url: String?
        package var facts: SourceFacts

        private enum Key: String, CodingKey {
            case url
            case loopCount = "loop_count"
        }

        package init(url: String?, facts: SourceFacts) {
            self.url = url
            self.facts = facts
        }

        package init(from decoder: any Decoder) throws {
            url = try decoder.container(keyedBy: Key.self).decodeIfPresent(String.self, forKey: .url)
            facts = try SourceFacts(from: decoder)
        }

        /// One object, in which «none» is null and not left out.
        package func encode(to encoder: any Encoder) throws {
            try facts.encode(to: encoder)
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(url, forKey: .url)
            try container.encode(facts.loopCount, forKey: .loopCount)
        }
    }

    /// What is known of a rendition; of one that is not made yet, where it may be asked for.
    package struct Rendition: Codable, Equatable {
        package var url: String
        package var bytes: Int64?
        package var width: Int?
        package var height: Int?
        /// In seconds; of a video.
        package var duration: Double?

        package init(url: String, bytes: Int64? = nil) {
            self.url = url
            self.bytes = bytes
        }
    }

    package var source: Source
    /// By the format's name; with default options.
    package var renditions: [String: Rendition]

    package init(source: Source, renditions: [String: Rendition]) {
        self.source = source
        self.renditions = renditions
    }

    package var encoded: [UInt8] { JSONText.encode(self) }
}
