internal import HTTP
internal import Renditions

/// The page that plays a video (format `html`).
///
/// The page contains its style and script, and loads only the video and its poster. The video's size is in the markup, so the
/// layout does not shift when the video loads.
struct PlayerPage: Sendable {
    /// The placeholder for a picture until it has loaded.
    struct Blur {
        /// A `data:` URL.
        var image: String
        /// The BlurHash, for scripts; empty if it is not known.
        var hash: String
    }

    struct Contents {
        /// The name of the GIF; untrusted text.
        var name: String
        var links: PageLinks
        /// The size of the video in pixels.
        var width: Int
        var height: Int
        /// The size of the poster in pixels.
        var posterWidth: Int
        var posterHeight: Int
        /// The blur of the GIF's first frame, shown until the poster has loaded; nil if it is unknown or the picture's fit is
        /// not `contain`.
        var blur: Blur?
        /// The number of times that the video plays; nil for an endless loop.
        var playCount: Int?
    }

    private let preview: LinkPreview
    private let page = PageTemplate(PackageResources.player_html)
    private let video = PageTemplate(PackageResources.player_video_html)
    /// One encoding of the video.
    private let source = PageTemplate(PackageResources.player_source_html)
    private let blur = PageTemplate(PackageResources.player_blur_html)
    /// An animation in an image, with its button.
    private let image = PageTemplate(PackageResources.player_image_html)
    /// An image without a button: a still picture, or the GIF while there is no video.
    private let picture = PageTemplate(PackageResources.player_picture_html)
    private let videoTags = PageTemplate(PackageResources.player_video_tags_html)
    private let videoPolicy = PagePolicy.value(
        style: PackageResources.player_css, script: PackageResources.player_js,
        ["img-src 'self' data:", "media-src 'self'", "form-action 'none'"])
    private let imagePolicy = PagePolicy.value(
        style: PackageResources.player_css, script: PackageResources.player_image_js,
        ["img-src 'self' data:", "form-action 'none'"])
    private let stillPolicy = PagePolicy.value(
        style: PackageResources.player_css, script: nil, ["img-src 'self' data:", "form-action 'none'"])
    /// The GIF may be loaded from its own origin.
    private let originalPolicy = PagePolicy.value(
        style: PackageResources.player_css, script: nil, ["img-src 'self' http: https:", "form-action 'none'"])

    init(_ preview: LinkPreview = LinkPreview()) {
        self.preview = preview
    }

    /// Returns a `meta` element of the head; empty without a value.
    private static func meta(_ key: String, _ name: String, _ value: String?) -> String {
        value.map { "<meta \(key)=\"\(name)\" content=\"\(HTMLText.escape($0))\">\n" } ?? ""
    }

    /// Returns the page as a resource of the HTTP engine.
    ///
    /// - Parameters:
    ///   - fields: Additional fields, such as `Cache-Control`.
    ///   - lastModified: The time at which the page's content last changed, in seconds since 1970; nil if unknown.
    func resource(_ contents: Contents, fields: HTTPHeaders, lastModified: Int?) -> HTTPResource {
        var fields = fields
        let medium = Medium(contents.links)
        let policy =
            switch medium {
            case .video: videoPolicy
            case .animation: imagePolicy
            case .still: stillPolicy
            case .original: originalPolicy
            }
        fields.append("Content-Security-Policy", policy)
        fields.append("Referrer-Policy", "no-referrer")
        // A page with an embedder policy can only frame pages that have one too. The origin of a GIF may not permit it.
        if medium != .original { fields.append("Cross-Origin-Embedder-Policy", "require-corp") }
        fields.append("Accept-CH", WidthHints.names)
        return HTTPResource(
            Array(html(contents).utf8), Rendition.Format.html.contentType, lastModified: lastModified, headers: fields)
    }

    private enum Medium {
        case video
        /// A moving image.
        case animation
        case still
        /// The GIF, while there is no video.
        case original

        init(_ links: PageLinks) {
            self =
                if links.original != nil {
                    .original
                } else if let image = links.image {
                    image.still == nil ? .still : .animation
                } else {
                    .video
                }
        }
    }

    func html(_ contents: Contents) -> String {
        let links = contents.links
        let medium = Medium(links)
        let videoAddress = links.base + links.namedVideo
        let texts = [
            "title": contents.name, "page": links.pageAddress, "player": links.base + links.namedPage,
            "oembed": links.oembedAddress,
            "video": links.root + links.video, "video_address": videoAddress,
            "poster": links.root + links.poster, "poster_address": links.base + links.namedPoster,
            "width": String(contents.width), "height": String(contents.height),
            "poster_width": String(contents.posterWidth), "poster_height": String(contents.posterHeight),
            "image": links.original ?? links.root + (links.image?.address ?? ""),
            "still": links.root + (links.image?.still ?? ""),
            "label": medium == .still ? contents.name : "Animation: \(contents.name)",
            "og_type": medium == .still ? "website" : "video.other",
            "card": medium == .still ? "summary_large_image" : "player",
        ]
        let (template, script): (PageTemplate, [UInt8]?) =
            switch medium {
            case .video: (video, PackageResources.player_js)
            case .animation: (image, PackageResources.player_image_js)
            case .still, .original: (picture, nil)
            }
        let media = template.filled(
            texts,
            markup: [
                "blur": contents.blur.map { blur.filled(["blur": $0.image, "blurhash": $0.hash]) } ?? "",
                "sources": links.sources.map { source.filled(["source": links.root + $0.target, "type": $0.type]) }.joined(),
                // The script removes the attribute before the last of several plays.
                "loop": contents.playCount == 1 ? "" : " loop",
                "plays": contents.playCount.map { " data-plays=\"\($0)\"" } ?? "",
            ])
        let secureVideo =
            videoAddress.hasPrefix("https:")
            ? "<meta property=\"og:video:secure_url\" content=\"\(HTMLText.escape(videoAddress))\">\n" : ""
        // A page with a still picture has no video tags.
        let tags = medium == .still ? "" : videoTags.filled(texts, markup: ["secure_video": secureVideo])
        return page.filled(
            texts,
            markup: [
                "style": String(decoding: PackageResources.player_css, as: UTF8.self), "media": media,
                "description": Self.meta("property", "og:description", preview.description),
                "site_name": Self.meta("property", "og:site_name", preview.siteName),
                "twitter_site": Self.meta("name", "twitter:site", preview.twitterSite),
                "script": script.map { "<script>\(String(decoding: $0, as: UTF8.self))</script>\n" } ?? "",
                "video_tags": tags,
            ])
    }
}
