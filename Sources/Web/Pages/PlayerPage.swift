internal import HTTP
internal import Renditions

/// The page that plays a video (format `html`).
///
/// It stands alone: style and script are in it, and all it loads is the video and its poster. The place of the video is
/// kept from the beginning, so nothing moves when that comes.
struct PlayerPage: Sendable {
    /// What one page shows.
    struct Contents {
        /// What the GIF is called; a stranger's word.
        var name: String
        var links: PageLinks
        /// The video, in pixels.
        var width: Int
        var height: Int
        /// The poster, in pixels.
        var posterWidth: Int
        var posterHeight: Int
        /// How often the video is to play; nil for always.
        var plays: Int?
    }

    private let template = PageTemplate(PackageResources.player_html)
    private let policy = PagePolicy.value(
        style: PackageResources.player_css, script: PackageResources.player_js,
        ["img-src 'self'", "media-src 'self'", "form-action 'none'"])

    /// The page as the engine sends it.
    ///
    /// - Parameters:
    ///   - fields: What goes with it, such as `Cache-Control`.
    ///   - lastModified: When the facts it is made of were found, in seconds since 1970.
    func resource(_ contents: Contents, fields: HTTPHeaders, lastModified: Int) -> HTTPResource {
        let page = text(contents)
        var fields = fields
        fields.append("Content-Security-Policy", policy)
        fields.append("Referrer-Policy", "no-referrer")
        return HTTPResource(
            bytes: Array(page.utf8), contentType: Rendition.Format.html.contentType, entityTag: PageTag.of(page),
            lastModified: lastModified, headers: fields)
    }

    func text(_ contents: Contents) -> String {
        let links = contents.links
        let videoAddress = links.base + links.video
        return template.filled(
            [
                "title": contents.name, "page": links.pageAddress, "oembed": links.oembedAddress,
                "video": links.root + links.video, "video_address": videoAddress,
                "poster": links.root + links.poster, "poster_address": links.base + links.poster,
                "width": String(contents.width), "height": String(contents.height),
                "poster_width": String(contents.posterWidth), "poster_height": String(contents.posterHeight),
            ],
            markup: [
                "style": String(decoding: PackageResources.player_css, as: UTF8.self),
                "script": String(decoding: PackageResources.player_js, as: UTF8.self),
                // A video that plays once has no use for the attribute; one that plays n times loses it in its last play.
                "loop": contents.plays == 1 ? "" : " loop",
                "plays": contents.plays.map { " data-plays=\"\($0)\"" } ?? "",
                "secure_video": videoAddress.hasPrefix("https:")
                    ? "<meta property=\"og:video:secure_url\" content=\"\(HTMLText.escape(videoAddress))\">\n" : "",
            ])
    }
}

extension PlayerPage {
    /// How often a GIF plays, by its loop count: a count of n means n repetitions after the first play, as Chromium and
    /// WebKit have it; none means once, 0 for ever.
    ///
    /// - Parameter repeats: How often the animation stands in the video.
    /// - Returns: Plays of the video, at least 1; nil for ever.
    static func plays(loopCount: Int?, repeats: Int) -> Int? {
        guard let loopCount else { return 1 }
        return loopCount == 0 ? nil : (loopCount + 1 + repeats - 1) / repeats
    }
}
