package import Media

extension Rendition {
    /// What is made of a GIF; the raw value is its name in a path and its extension.
    package enum Format: String, Sendable, CaseIterable {
        case mp4
        case jpg
        case png
        case webp
        /// Facts about the GIF and its renditions.
        case json
        /// A page that plays the video.
        case html
        /// The GIF as it is: what a mount that negotiates answers with to clients that do not name the video. It cannot be
        /// asked for by its name, and takes no options.
        case gif

        /// Those that can be asked for by their name.
        package static let allCases: [Format] = [.mp4, .jpg, .png, .webp, .json, .html]

        /// The format that a request calls `name`.
        package static func named(_ name: some StringProtocol) -> Format? {
            allCases.first { $0.rawValue == name }
        }

        /// The media type.
        package var contentType: String {
            switch self {
            case .mp4: "video/mp4"
            case .jpg: "image/jpeg"
            case .png: "image/png"
            case .webp: "image/webp"
            case .json: "application/json"
            case .html: "text/html; charset=utf-8"
            case .gif: "image/gif"
            }
        }

        /// What a worker makes for it; nil where none is needed.
        package var output: OutputFormat? {
            switch self {
            case .mp4: .mp4
            case .jpg: .jpg
            case .png: .png
            case .webp: .webp
            case .json: .facts
            case .html, .gif: nil
            }
        }

        /// Whether the stored file is the answer. The others are composed anew for each, of what is stored.
        package var isAnsweredAsStored: Bool {
            switch self {
            case .mp4, .jpg, .png, .webp, .gif: true
            case .json, .html: false
            }
        }

        /// A still picture of one frame.
        package var isPoster: Bool {
            switch self {
            case .jpg, .png, .webp: true
            case .mp4, .json, .html, .gif: false
            }
        }
    }
}
