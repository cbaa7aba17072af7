internal import Glibc
internal import HTTP
internal import Renditions

/// Handles requests that concern no source: the home page, the files of the program, and the description of the interface.
struct SiteController: Sendable {
    private let homePage: HTTPResource?
    private let files: [SiteFile: HTTPResource]
    let openAPI: HTTPResource

    init(_ policy: WebPolicy, _ defaults: RenditionDefaults, crossOrigin: CrossOrigin) {
        let startedAt = time(nil)
        homePage =
            policy.hasHomePage ? HomePage.resource(policy, defaults, crossOrigin: crossOrigin, startedAt: startedAt) : nil
        openAPI = OpenAPIDocument.resource(policy, crossOrigin: crossOrigin, startedAt: startedAt)
        files = Dictionary(
            uniqueKeysWithValues: SiteFile.allCases.map {
                ($0, $0.resource(crossOrigin: crossOrigin, startedAt: startedAt))
            })
    }

    func file(_ file: SiteFile) -> HTTPResponse {
        files[file].map { HTTPResponse($0) } ?? ProblemDocument.response(.notFound("There is no such file."))
    }

    /// The home page.
    ///
    /// - Throws: `not_found` if it is switched off.
    func home() throws(Problem) -> HTTPResponse {
        guard let homePage else { throw .notFound("The home page is switched off.") }
        return HTTPResponse(homePage)
    }
}

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
        case .script: PackageResources.gifreel_min_js
        case .videoModule: PackageResources.video_min_js
        case .sample: PackageResources.sample_gif
        case .icon: PackageResources.favicon_ico
        case .index: Array(ModelIndex.text.utf8)
        }
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
        return HTTPResource(bytes, contentType, lastModified: startedAt, headers: headers)
    }
}
