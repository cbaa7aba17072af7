internal import Glibc
internal import HTTP
internal import Renditions

/// Handles requests that concern no source: the home page, the files of the program, and the description of the interface.
struct SiteController: Sendable {
    private let homePage: HTTPResource?
    private let files: [SiteFile: HTTPResource]
    /// The description of the interface.
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

    /// A file that is part of the program.
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
