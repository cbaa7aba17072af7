internal import HTTP
internal import Renditions

/// The oEmbed document of a page (oembed.com, section 2.3.4.2: the video type).
struct OEmbed: Encodable, Equatable {
    var type = "video"
    var version = "1.0"
    var providerName = "Gifreel"
    var title: String
    var cacheAge: Int
    /// The address and size of the thumbnail; nil if no poster fits the consumer's bounds.
    var thumbnailUrl: String?
    var thumbnailWidth: Int?
    var thumbnailHeight: Int?
    var html: String
    var width: Int
    var height: Int

    /// The parameters of a consumer's request.
    struct Query: Equatable, Sendable {
        /// The address of a player page, of a video or poster of this server, or of a GIF.
        var url: String
        var maxWidth: Int?
        var maxHeight: Int?

        /// - Throws: ``Problem``: 501 for formats other than JSON, as oembed.com demands; 400 for invalid parameters.
        init(_ items: [QueryItem]) throws(Problem) {
            var url: String?
            for item in items {
                switch item.name {
                case "url":
                    guard url == nil else { throw .badOption("url", "is given twice") }
                    url = item.value
                case "maxwidth": maxWidth = try Self.size(item)
                case "maxheight": maxHeight = try Self.size(item)
                case "format":
                    guard item.value == "json" else {
                        throw Problem(501, "not_implemented", "oEmbed documents are available as JSON only.")
                    }
                default: break  // Consumers may send other parameters.
                }
            }
            guard let url else { throw .badSourceURL("The parameter url is missing: the address of a page or of a GIF.") }
            self.url = url
        }

        private static func size(_ item: QueryItem) throws(Problem) -> Int {
            guard let size = DecimalText.whole(item.value), size > 0 else {
                throw .badOption(item.name, "must be a whole number of at least 1")
            }
            return size
        }
    }

    /// - Parameters:
    ///   - contents: The contents of the player page; its poster is the thumbnail.
    ///   - maxAge: Seconds for which consumers may store the document.
    init(_ contents: PlayerPage.Contents, _ query: Query, hasThumbnail: Bool, maxAge: Int) {
        title = contents.name
        cacheAge = maxAge
        if hasThumbnail {
            thumbnailUrl = contents.links.base + contents.links.namedPoster
            thumbnailWidth = contents.posterWidth
            thumbnailHeight = contents.posterHeight
        }
        (width, height) = Self.fit(contents.width, contents.height, query.maxWidth, query.maxHeight)
        html =
            "<iframe src=\"\(HTMLText.escape(contents.links.base + contents.links.namedPage))\" width=\"\(width)\" height=\"\(height)\""
            + " title=\"\(HTMLText.escape(contents.name))\" style=\"border:0\" allow=\"autoplay\" loading=\"lazy\"></iframe>"
    }

    /// The largest size with the same aspect ratio within both bounds, and no larger than the video.
    static func fit(_ width: Int, _ height: Int, _ maxWidth: Int?, _ maxHeight: Int?) -> (Int, Int) {
        var size = (width, height)
        if let maxWidth, size.0 > maxWidth { size = (maxWidth, max(1, height * maxWidth / width)) }
        if let maxHeight, size.1 > maxHeight { size = (max(1, width * maxHeight / height), maxHeight) }
        return size
    }
}
