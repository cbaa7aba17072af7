internal import HTTP
internal import Renditions

/// The page at `/`, which converts a GIF for the visitor. If requests must be signed, the page says so instead, because a page
/// must not contain the key.
enum HomePage {
    /// - Parameter startedAt: The page's `Last-Modified`, in seconds since 1970.
    static func resource(
        _ policy: WebPolicy, _ defaults: RenditionDefaults, crossOrigin: CrossOrigin, startedAt: Int
    ) -> HTTPResource {
        let isSigned = policy.requiresSignature
        let style = PackageResources.home_css
        let script =
            isSigned
            ? nil : PackageResources.home_js + PackageResources.home_progress_js + PackageResources.home_result_js
        let limit = policy.maxUploadBytes
        let page = PageTemplate(isSigned ? PackageResources.signed_html : PackageResources.home_html).filled(
            ["max_bytes": String(limit), "max_size": size(limit), "version": policy.version],
            markup: [
                "style": String(decoding: style, as: UTF8.self),
                "script": String(decoding: script ?? [], as: UTF8.self),
                "options": policy.options == .any ? Self.options(defaults) : "",
                "formats": Self.filled(PackageResources.home_format_html, policy.options),
                "format_buttons": Self.filled(PackageResources.home_format_button_html, policy.options),
            ])
        let directives = [
            "connect-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "media-src blob:",
            // The selected file, or the GIF at the entered address, which the browser fetches from its origin.
            "img-src blob: data: http: https:",
        ]
        var headers: HTTPHeaders = [
            "Cache-Control": "no-cache",
            "Content-Security-Policy": PagePolicy.value(style: style, script: script, directives),
            "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
        ]
        headers.append(crossOrigin.fields)
        return HTTPResource(Array(page.utf8), "text/html; charset=utf-8", lastModified: startedAt, headers: headers)
    }

    private static func options(_ defaults: RenditionDefaults) -> String {
        PageTemplate(PackageResources.home_options_html).filled(
            [:], markup: ["dither_choices": ditherChoices(isRemoved: defaults.undithers)])
    }

    /// The choices of the option `undither`. The default has no value, because addresses omit it.
    private static func ditherChoices(isRemoved: Bool) -> String {
        let usual = isRemoved ? "auto" : "0"
        return [("remove from films", "auto"), ("remove everywhere", "1"), ("keep", "0")].map { name, value in
            value == usual
                ? #"<option value="" selected>\#(name)</option>"# : #"<option value="\#(value)">\#(name)</option>"#
        }.joined()
    }

    /// Fills a template for each offered format and codec, with the options that visitors may use.
    private static func filled(_ template: [UInt8], _ policy: OptionPolicy) -> String {
        let template = PageTemplate(template)
        return Rendition.listed.map { rendition in
            let format = rendition.canonicalText
            let (name, note) = descriptions[format] ?? (rendition.format.rawValue.uppercased(), "")
            let options = policy == .any ? RenditionOption.allCases.filter { $0.applies(to: rendition.format) } : []
            return template.filled([
                "format": format, "name": name, "note": note, "extension": rendition.format.rawValue,
                "options": options.map(\.rawValue).joined(separator: " "),
            ])
        }.joined()
    }

    /// The names and purposes of the formats, by canonical text. A format without an entry is shown under its own name.
    private static let descriptions: [String: (name: String, note: String)] = [
        "mp4": ("MP4, H.264", "A video that plays everywhere."),
        "mp4,codec=av1": ("MP4, AV1", "A smaller video for current browsers."),
        "webm": ("WebM, VP9", "A video that keeps transparency."),
        "avif": ("AVIF", "An animated image for the element img."),
        "awebp": ("Animated WebP", "A lossless image for the element img."),
        "gif": ("GIF", "The same animation in fewer bytes."),
        "jpg": ("JPEG", "The first frame."),
        "png": ("PNG", "The first frame, lossless, with transparency."),
        "webp": ("WebP", "The first frame, with transparency."),
    ]

    /// A number of bytes as text, rounded down: `20 MB`.
    private static func size(_ bytes: Int) -> String {
        bytes >= 1_000_000 ? "\(bytes / 1_000_000) MB" : "\(bytes / 1000) KB"
    }
}
