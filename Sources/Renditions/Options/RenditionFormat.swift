package import Media

extension Rendition {
    /// A format that can be answered with. The raw value is its name in a path and its file extension.
    ///
    /// Everything about the formats that workers make derives from the table of outputs (``OutputTraits``).
    package enum Format: RawRepresentable, Sendable, Hashable, CaseIterable {
        /// What a worker makes.
        case output(OutputFormat)
        /// A page that plays the video.
        case html
        /// The GIF as it is: the answer of a mount that negotiates to clients that do not accept the video. It cannot be
        /// requested by name, and takes no options.
        case gif

        package static var mp4: Format { .output(.mp4) }
        package static var jpg: Format { .output(.jpg) }
        package static var png: Format { .output(.png) }
        package static var webp: Format { .output(.webp) }
        /// The facts about the GIF and its renditions.
        package static var json: Format { .output(.facts) }

        /// The formats that can be requested by name.
        package static let allCases = OutputFormat.allCases.map(Format.output) + [.html]

        private static let byName = Dictionary(uniqueKeysWithValues: (allCases + [.gif]).map { ($0.rawValue, $0) })

        package init?(rawValue: String) {
            guard let format = Self.byName[rawValue] else { return nil }
            self = format
        }

        package var rawValue: String {
            switch self {
            case .output(let output): output.traits.name
            case .html: "html"
            case .gif: "gif"
            }
        }

        /// The format that a request calls `name`.
        package static func named(_ name: some StringProtocol) -> Format? {
            byName[String(name)].flatMap { $0 == .gif ? nil : $0 }
        }

        /// The media type.
        package var contentType: String {
            switch self {
            case .output(let output): output.traits.mediaType
            case .html: "text/html; charset=utf-8"
            case .gif: "image/gif"
            }
        }

        /// What a worker makes for it; nil where none is needed.
        package var output: OutputFormat? {
            if case .output(let output) = self { output } else { nil }
        }

        /// Whether the stored file is the answer. The others are composed for each answer from what is stored.
        package var isAnsweredAsStored: Bool {
            switch self {
            case .output(let output): output.traits.kind != .facts
            case .html: false
            case .gif: true
            }
        }

        /// Whether it is a still picture of one frame.
        package var isPoster: Bool { output?.traits.kind == .poster }
    }
}
