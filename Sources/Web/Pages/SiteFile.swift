internal import HTTP

/// The script at `/gifreel.js`, which pages of any origin include to play their GIF images as videos (docs/pages.md).
struct PageScript: Sendable {
    private let resource: HTTPResource

    /// - Parameter startedAt: The script's `Last-Modified`, in seconds since 1970.
    init(crossOrigin: CrossOrigin, startedAt: Int) {
        let bytes = PackageResources.gifreel_js
        var headers: HTTPHeaders = [
            "Cache-Control": "public, max-age=3600, stale-while-revalidate=86400",
            // Pages with a cross-origin embedder policy may include the script too.
            "Cross-Origin-Resource-Policy": "cross-origin", "X-Content-Type-Options": "nosniff",
        ]
        headers.append(crossOrigin.fields)
        resource = HTTPResource(
            bytes: bytes, contentType: "text/javascript; charset=utf-8",
            entityTag: PageTag.of(String(decoding: bytes, as: UTF8.self)), lastModified: startedAt, headers: headers)
    }

    var response: HTTPResponse { HTTPResponse(resource) }
}
