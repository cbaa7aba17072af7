internal import Fetch
internal import HTTP

/// The page at `/`, which converts a GIF for the visitor. If requests must be signed, the page says so instead, because a page must
/// not contain the key.
struct HomePage: Sendable {
    private let resource: HTTPResource

    /// - Parameter startedAt: The page's `Last-Modified`, in seconds since 1970.
    init(_ policy: WebPolicy, crossOrigin: CrossOrigin, startedAt: Int) {
        let isSigned = policy.requiresSignature
        let style = PackageResources.home_css
        let script = isSigned ? nil : PackageResources.home_js + PackageResources.home_result_js
        let limit = policy.maxUploadBytes
        let page = PageTemplate(isSigned ? PackageResources.signed_html : PackageResources.home_html).filled(
            ["max_bytes": String(limit), "max_size": Self.size(limit), "version": policy.version],
            markup: [
                "style": String(decoding: style, as: UTF8.self),
                "script": String(decoding: script ?? [], as: UTF8.self),
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
        resource = HTTPResource(
            bytes: Array(page.utf8), contentType: "text/html; charset=utf-8", entityTag: PageTag.of(page),
            lastModified: startedAt, headers: headers)
    }

    /// A number of bytes as text, rounded down: `20 MB`.
    private static func size(_ bytes: Int) -> String {
        bytes >= 1_000_000 ? "\(bytes / 1_000_000) MB" : "\(bytes / 1000) KB"
    }

    var response: HTTPResponse { HTTPResponse(resource) }
}
