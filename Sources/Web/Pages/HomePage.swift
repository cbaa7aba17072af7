internal import Fetch
internal import HTTP

/// The page at `/`, which converts a GIF for the visitor. Where requests have to be signed it says so instead, because a page
/// must not know the key.
struct HomePage: Sendable {
    private let resource: HTTPResource

    /// - Parameter startedAt: The page's `Last-Modified`, in seconds since 1970.
    init(_ configuration: WebPolicy, crossOrigin: CrossOrigin, startedAt: Int) {
        let isSigned = configuration.requiresSignature
        let style = PackageResources.home_css
        let script = isSigned ? nil : PackageResources.home_js + PackageResources.home_result_js
        let limit = configuration.maxUploadBytes
        let page = PageTemplate(isSigned ? PackageResources.signed_html : PackageResources.home_html).filled(
            ["max_bytes": String(limit), "max_size": Self.size(limit), "version": configuration.version],
            markup: [
                "style": String(decoding: style, as: UTF8.self),
                "script": String(decoding: script ?? [], as: UTF8.self),
            ])
        let directives = [
            "connect-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "media-src blob:",
            // The chosen file, or the GIF at a pasted address, which the browser fetches from there itself.
            "img-src blob: data: http: https:",
        ]
        var headers: HTTPHeaders = [
            "Cache-Control": "no-cache",
            "Content-Security-Policy": PagePolicy.value(style: style, script: script, directives),
            "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
        ]
        headers.append(crossOrigin.fields)
        resource = HTTPResource(
            bytes: Array(page.utf8), contentType: "text/html; charset=utf-8", entityTag: PageTag.of(page),
            lastModified: startedAt, headers: headers)
    }

    /// A number of bytes for people, rounded down: `20 MB`.
    private static func size(_ bytes: Int) -> String {
        bytes >= 1_000_000 ? "\(bytes / 1_000_000) MB" : "\(bytes / 1000) KB"
    }

    var response: HTTPResponse { HTTPResponse(resource) }
}
