internal import HTTP

extension SiteFile {
    private var contentType: String {
        switch self {
        case .script: "text/javascript; charset=utf-8"
        case .sample: "image/gif"
        case .icon: "image/x-icon"
        }
    }

    var bytes: [UInt8] {
        switch self {
        case .script: Self.condensed(PackageResources.gifreel_js)
        case .sample: PackageResources.sample_gif
        case .icon: PackageResources.favicon_ico
        }
    }

    /// A script without indentation, lines of comments, and most spaces between tokens. Strings and styles in the script must not contain
    /// the patterns that are replaced.
    private static func condensed(_ script: [UInt8]) -> [UInt8] {
        let lines = script.split(separator: UInt8(ascii: "\n")).map { $0.drop { $0 == UInt8(ascii: " ") } }
        let code = lines.filter { !$0.starts(with: "//".utf8) && !$0.starts(with: "/*".utf8) }
        var text = code.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "\n")
        let operators = ["=", "=>", "&&", "||", "??", "===", "!==", "<", ">", "<=", ">=", "+", "?", ":"]
        let patterns =
            operators.map { (" \($0) ", $0) } + ["{", ";", ",", "("].map { ($0 + "\n", $0) }
            + [("\n}", "}"), (", ", ","), ("{ ", "{"), (" }", "}"), (") {", "){"), ("if (", "if("), ("for (", "for(")]
        for (pattern, replacement) in patterns { text = text.replacing(pattern, with: replacement) }
        return Array(text.utf8)
    }

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
