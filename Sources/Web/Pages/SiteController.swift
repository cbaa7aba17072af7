internal import Glibc
internal import HTTP
internal import Renditions

/// Handles requests that concern no source: the home page, the files of the program, and the description of the interface.
struct SiteController: Sendable {
    private let homePage: HomePage?
    private let files: [SiteFile: HTTPResource]
    private let openAPIDocument: OpenAPIDocument

    init(_ policy: WebPolicy, _ defaults: RenditionDefaults, crossOrigin: CrossOrigin) {
        let startedAt = time(nil)
        homePage = policy.hasHomePage ? HomePage(policy, defaults, crossOrigin: crossOrigin, startedAt: startedAt) : nil
        openAPIDocument = OpenAPIDocument(policy, crossOrigin: crossOrigin, startedAt: startedAt)
        files = Dictionary(
            uniqueKeysWithValues: SiteFile.allCases.map {
                ($0, $0.resource(crossOrigin: crossOrigin, startedAt: startedAt))
            })
    }

    /// A file that is part of the program.
    func file(_ file: SiteFile) -> HTTPResponse {
        files[file].map { HTTPResponse($0) } ?? ProblemDocument.response(.notFound("There is no such file."))
    }

    /// The description of the interface.
    func openAPI() -> HTTPResponse { openAPIDocument.response }

    /// The home page.
    ///
    /// - Throws: `not_found` if it is switched off.
    func home() throws(Problem) -> HTTPResponse {
        guard let homePage else { throw .notFound("The home page is switched off.") }
        return homePage.response
    }
}
