internal import Foundation
internal import Media

/// The body of `json` (docs/api.md).
package struct FactsDocument: Codable, Equatable, Sendable {
    /// A GIF's facts and its URL.
    package struct Source: Codable, Equatable, Sendable {
        /// Null for an upload.
        package var url: String?
        package var facts: SourceFacts

        private enum Key: CodingKey {
            case url, loopCount
        }

        init(facts: SourceFacts) { self.facts = facts }

        package init(from decoder: any Decoder) throws {
            url = try decoder.container(keyedBy: Key.self).decodeIfPresent(String.self, forKey: .url)
            facts = try SourceFacts(from: decoder)
        }

        /// Encodes one object, in which missing values are null.
        package func encode(to encoder: any Encoder) throws {
            try facts.encode(to: encoder)
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(url, forKey: .url)
            try container.encode(facts.loopCount, forKey: .loopCount)
        }
    }

    /// The facts of a rendition. If it is not stored, only its URL is known.
    package struct Rendition: Codable, Equatable, Sendable {
        package var url: String
        /// The media type, with the parameter `codecs` if the format has one.
        package var type: String?
        package var bytes: Int64?
        package var width: Int?
        package var height: Int?
        /// In seconds; nil for a poster.
        package var duration: Double?
        /// True if dither was removed from the pictures; else nil.
        package var undithered: Bool?

        package init(url: String, type: String? = nil, bytes: Int64? = nil) {
            self.url = url
            self.type = type
            self.bytes = bytes
        }
    }

    /// What a page does with the image of the source; see ``PageRule``.
    package struct Page: Codable, Equatable, Sendable {
        /// An encoding of the video.
        package struct Video: Codable, Equatable, Sendable {
            package var src: String
            /// The media type, with the parameter `codecs` if it is known.
            package var type: String

            package init(src: String, type: String) {
                self.src = src
                self.type = type
            }
        }

        package var use: PageRule.Use
        /// Why an image stays.
        package var reason: PageRule.Reason?
        /// The address that negotiates the format; nil if the image stays.
        package var src: String?
        /// The address of a still picture, if the source moves.
        package var still: String?
        /// The encodings of a video, the preferred one first.
        package var video: [Video]?

        private enum CodingKeys: String, CodingKey {
            case use = "as"
            case reason, src, still, video
        }

        package init(use: PageRule.Use, reason: PageRule.Reason? = nil) {
            self.use = use
            self.reason = reason
        }
    }

    package var source: Source
    /// Nil in the stored document, for an upload, and in documents of an older server.
    package var page: Page?
    /// Nil in facts that an older version stored.
    package var placeholder: FactsPlaceholder?
    /// The first frame as a BlurHash. Nil in facts that an older version stored.
    package var blurhash: String?
    /// The fingerprints of some pictures; nil unless requested.
    package var fingerprints: [FactsFingerprint]?
    /// Nil unless requested.
    package var flashes: FactsFlashes?
    /// The renditions of ``Renditions/Rendition/listed``, by their canonical texts: `mp4`, `mp4,codec=av1`, …
    package var renditions: [String: Rendition]

    init(facts: SourceFacts, _ placeholder: Placeholder) {
        source = Source(facts: facts)
        self.placeholder = FactsPlaceholder(placeholder)
        blurhash = placeholder.blurHash
        renditions = [:]
    }

    /// Reads a document of a server. Members that this version does not know are ignored.
    ///
    /// - Returns: Nil if the text is no such document.
    package init?(json: [UInt8]) {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        guard let document = try? decoder.decode(FactsDocument.self, from: Data(json)) else { return nil }
        self = document
    }

    /// The hashes of the pictures with enough detail to be compared.
    var hashes: [PDQHash] { fingerprints?.compactMap(\.hash) ?? [] }

    /// Whether every number is in its range; a stored document may be damaged.
    var isInRange: Bool {
        source.facts.isInRange && placeholder?.isInRange != false && blurhash.map(BlurHash.isValid) != false
            && fingerprints?.allSatisfy { $0.isInRange(frames: source.facts.frames) } != false
            && flashes?.isInRange != false
    }

    /// The document as JSON.
    package var encoded: [UInt8] { JSONText.encode(self, inSnakeCase: true) }
}

/// JSON bodies.
package enum JSONText {
    /// Returns the value as JSON with sorted keys and a trailing newline.
    ///
    /// - Parameter inSnakeCase: Whether keys are names of properties in snake case. Keys of dictionaries stay as they are.
    package static func encode(_ value: some Encodable, inSnakeCase: Bool = false) -> [UInt8] {
        let encoder = JSONEncoder()
        if inSnakeCase { encoder.keyEncodingStrategy = .convertToSnakeCase }
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Encoding fails only for infinity and NaN, which no document contains.
        let data = (try? encoder.encode(value)) ?? Data("{}".utf8)
        return Array(data) + [UInt8(ascii: "\n")]
    }
}

/// The placeholder of a source in `json` (docs/api.md).
package struct FactsPlaceholder: Codable, Equatable, Sendable {
    /// `#rrggbb`.
    package var dominantColor: String
    /// The picture in small, as a `data:` URL; nil in facts that an older version stored.
    package var image: String?

    private static let scheme = "data:image/webp;base64,"

    init(_ placeholder: Placeholder) {
        dominantColor = "#" + placeholder.dominantColor.hex
        image = Self.scheme + Data(placeholder.image).base64EncodedString()
    }

    var isInRange: Bool {
        guard dominantColor.hasPrefix("#"), RGB(hex: String(dominantColor.dropFirst())) != nil else { return false }
        guard let image else { return true }
        let bytes = image.hasPrefix(Self.scheme) ? Data(base64Encoded: String(image.dropFirst(Self.scheme.count))) : nil
        return bytes.map { Placeholder.isImage(Array($0)) } ?? false
    }
}

/// How often an animation flashes, in `json` (docs/api.md).
package struct FactsFlashes: Codable, Equatable, Sendable {
    /// See ``Flashes/general``.
    package var general: Int
    /// See ``Flashes/red``.
    package var red: Int
    /// The start of the second with the most flashes, in seconds; nil if nothing flashes.
    package var worstSecond: Double?

    init(_ flashes: Flashes, timescale: Int) {
        (general, red) = (flashes.general, flashes.red)
        worstSecond = general + red > 0 ? Double(flashes.worstSecond) / Double(timescale) : nil
    }

    var isInRange: Bool { general >= 0 && red >= 0 && worstSecond.map { $0 >= 0 } != false }
}

/// The PDQ hash of a picture in `json` (docs/api.md).
package struct FactsFingerprint: Codable, Equatable, Sendable {
    /// The index of the picture's frame.
    package var frame: Int
    /// 64 hexadecimal digits.
    package var pdq: String
    /// 0…100; see ``Fingerprint/quality``.
    package var quality: Int

    /// Reads the fingerprints from a worker's file; nil if the file has the wrong length or invalid content.
    static func list(_ file: ArraySlice<UInt8>, delays: ArraySlice<UInt8>) -> [FactsFingerprint]? {
        guard let fingerprints = Fingerprint.list(file), let delays = FactsOutput.delays(delays) else { return nil }
        let frames = Fingerprint.frames(of: delays)
        guard frames.count == fingerprints.count else { return nil }
        return zip(frames, fingerprints).map { FactsFingerprint(frame: $0, pdq: $1.hash.text, quality: $1.quality) }
    }

    /// The hash, if it can be compared with others.
    var hash: PDQHash? { isComparable ? PDQHash(text: pdq.utf8) : nil }

    /// Whether the picture has enough detail to be compared with others.
    package var isComparable: Bool { quality >= Fingerprint.leastQuality }

    func isInRange(frames: Int) -> Bool {
        (0..<frames).contains(frame) && PDQHash(text: pdq.utf8) != nil && (0...100).contains(quality)
    }
}
