internal import HTTP

extension SiteFile {
    private var contentType: String {
        switch self {
        case .script, .videoModule: "text/javascript; charset=utf-8"
        case .sample: "image/gif"
        case .icon: "image/x-icon"
        case .index: "text/plain; charset=utf-8"
        }
    }

    var bytes: [UInt8] {
        switch self {
        case .script: Self.scriptBytes
        case .videoModule: Self.moduleBytes
        case .sample: PackageResources.sample_gif
        case .icon: PackageResources.favicon_ico
        case .index: Array(ModelIndex.text.utf8)
        }
    }

    private static let scriptBytes = ScriptMinifier.shortened(ScriptMinifier.condensed(PackageResources.gifreel_js))
    /// It is not shortened, because the script calls its function by name.
    private static let moduleBytes = Array(ScriptMinifier.condensed(PackageResources.video_js).utf8)

    /// The file as a resource of the server.
    ///
    /// - Parameter startedAt: Its `Last-Modified`, in seconds since 1970.
    func resource(crossOrigin: CrossOrigin, startedAt: Int) -> HTTPResource {
        var headers: HTTPHeaders = [
            "Cache-Control": "public, max-age=3600, stale-while-revalidate=86400",
            // Pages with a cross-origin embedder policy may include the script too.
            "Cross-Origin-Resource-Policy": "cross-origin", "X-Content-Type-Options": "nosniff",
        ]
        headers.append(crossOrigin.fields)
        let bytes = bytes
        return HTTPResource(
            bytes: bytes, contentType: contentType, entityTag: PageTag.of(bytes), lastModified: startedAt, headers: headers)
    }
}
