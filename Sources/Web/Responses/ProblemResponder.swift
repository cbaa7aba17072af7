internal import HTTP
internal import Logging
internal import Renditions

/// Builds the responses of problems, and logs those of sources.
struct ProblemResponder: Sendable {
    private let errorPage: ErrorPage
    private let logger: Logger

    init(version: String, logger: Logger) {
        errorPage = ErrorPage(version: version)
        self.logger = logger
    }

    /// The response for a problem in the form that the client prefers.
    func response(_ problem: Problem, _ form: ProblemForm, headers: HTTPHeaders = HTTPHeaders()) -> HTTPResponse {
        var headers = headers
        if form.varies { headers.append("Vary", "Accept") }
        return form.isPage
            ? errorPage.response(problem, headers: headers) : ProblemDocument.response(problem, headers: headers)
    }

    /// The response for a rendition that could not be had. It is logged, unless the problem was remembered or the client left.
    ///
    /// - Parameter host: The source's; nil for an upload.
    func failure(
        _ problem: Problem, host: String?, _ terms: ResponseTerms = .plain, form: ProblemForm = .document
    ) -> HTTPResponse {
        var headers: HTTPHeaders = terms.varies ? ["Vary": "Accept"] : [:]
        if let status = problem.cacheStatus { headers.append("Cache-Status", status) }
        if problem.isLogged {
            logger.notice(
                "request failed",
                metadata: [
                    "code": "\(problem.code)", "source_host": "\(host ?? "upload")",
                    "cause": "\(problem.cause ?? problem.detail)",
                ])
        }
        return response(problem, form, headers: headers)
    }
}

/// The representation of a problem: a JSON document or, for requests of a player page whose client prefers HTML, a page.
struct ProblemForm: Sendable {
    var isPage = false
    /// Whether the representation depends on `Accept`.
    var varies = false

    static let document = ProblemForm()
}

extension ProblemForm {
    init(_ request: borrowing HTTPRequest, _ parser: RouteParser) {
        guard parser.namesPage(request.target) else { return }
        varies = true
        isPage = AcceptField(request.headers("Accept")).prefersPage
    }
}
