package import Media

extension Rendition {
    /// The format of a response. The raw value is its name in a path and its file extension.
    ///
    /// All properties of the formats that workers produce derive from the table of outputs (``OutputTraits``).
    package enum Format: RawRepresentable, Sendable, Hashable, CaseIterable {
        /// A file that a worker produces.
        case output(OutputFormat)
        /// A page that plays the video.
        case html
        /// The source itself, which a negotiating mount sends to clients that name no other format. It cannot be requested by
        /// name and has no options. Its media type follows from its bytes; see ``OriginalFile``.
        case original

        package static var mp4: Format { .output(.mp4) }
        package static var avif: Format { .output(.avif) }
        package static var awebp: Format { .output(.awebp) }
        package static var gif: Format { .output(.gif) }
        package static var jpg: Format { .output(.jpg) }
        package static var png: Format { .output(.png) }
        package static var webp: Format { .output(.webp) }
        /// The facts of the GIF and its renditions.
        package static var json: Format { .output(.facts) }

        /// The formats that can be requested by name.
        package static let allCases = OutputFormat.allCases.map(Format.output) + [.html]

        /// The formats that this program can produce: libavcodec has their encoders.
        package static let offered = LinkedLibraries.offered.map(Format.output) + [.html]

        /// The encoder that libavcodec must have for the format; nil if it needs none.
        package var encoder: String? { output?.traits.encoder }

        private static let longestName = byName.keys.map(\.utf8.count).max() ?? 0

        private static let byName = Dictionary(uniqueKeysWithValues: (allCases + [.original]).map { ($0.rawValue, $0) })

        package init?(rawValue: String) {
            guard let format = Self.byName[rawValue] else { return nil }
            self = format
        }

        package var rawValue: String {
            switch self {
            case .output(let output): output.traits.name
            case .html: "html"
            case .original: "original"
            }
        }

        /// The format with a name that a request may use.
        package static func named(_ name: some StringProtocol) -> Format? {
            // Clients choose the length of a name.
            guard name.utf8.count <= longestName else { return nil }
            return byName[String(name)].flatMap { $0 == .original ? nil : $0 }
        }

        /// The extensions of its files, the usual one first.
        package var fileExtensions: [String] {
            switch self {
            case .awebp: ["webp"]
            case .jpg: ["jpg", "jpeg"]
            default: [rawValue]
            }
        }

        /// The media type.
        package var contentType: String {
            switch self {
            case .output(let output): output.traits.mediaType
            case .html: "text/html; charset=utf-8"
            case .original: "image/gif"
            }
        }

        /// The media type of a file, as the attribute `type` of a `<source>` states it.
        ///
        /// - Parameter codecs: The parameter `codecs` (RFC 6381), if it is known.
        package func mediaType(codecs: String?) -> String {
            codecs.map { "\(contentType); codecs=\"\($0)\"" } ?? contentType
        }

        /// The output of the worker; nil if the format needs no worker.
        package var output: OutputFormat? {
            if case .output(let output) = self { output } else { nil }
        }

        /// Whether the stored file is the body of responses. Otherwise the body is composed from stored facts.
        package var isSentAsStored: Bool {
            switch self {
            case .output(let output): output.traits.kind != .facts
            case .html: false
            case .original: true
            }
        }

        /// Whether the format is lossless unless a quality is given.
        package var isLosslessByDefault: Bool { output?.traits.options.contains(.lossless) ?? false }

        /// Omits values that are the default of the format, so that equal renditions have equal options.
        func omitDefaults(_ options: inout TranscodeOptions) {
            if isLosslessByDefault {
                // Dither is removed from lossless pictures only on explicit request.
                if options.undither == .never { options.undither = .automatic }
            } else if options.chosenQuality == TranscodeOptions.defaultQuality {
                options.chosenQuality = nil
            }
        }

        /// Whether the format is an animation that browsers show as a picture.
        package var isSequence: Bool { output?.traits.kind == .sequence }

        /// Whether the format is an animation: the source, a sequence, or a video.
        var isMoving: Bool { self == .original || isSequence || output?.traits.kind == .video }

        /// Whether the format is a still picture of one frame.
        package var isPoster: Bool { output?.traits.kind == .poster }
    }
}
