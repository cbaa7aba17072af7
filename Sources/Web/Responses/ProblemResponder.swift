internal import HTTP

/// Builds the responses of problems, and logs those of sources.
struct ProblemResponder: Sendable {
    private let errorPage: ErrorPage
    private let log: ResponseLog

    init(version: String, log: ResponseLog) {
        errorPage = ErrorPage(version: version)
        self.log = log
    }

    /// Returns the response for a problem in the representation that the client prefers.
    func response(_ problem: Problem, _ form: ProblemForm, headers: HTTPHeaders = HTTPHeaders()) -> HTTPResponse {
        var headers = headers
        if form.varies { headers.append("Vary", "Accept") }
        return form.isPage
            ? errorPage.page(problem, headers: headers) : ProblemDocument.response(problem, headers: headers)
    }

    /// Returns the response for a failed rendition, and logs the problem, unless it was remembered or the client has left.
    ///
    /// - Parameter host: The host of the source; nil for an upload.
    func failure(
        _ problem: Problem, host: String?, _ terms: ResponseTerms = .plain, form: ProblemForm = .document
    ) -> HTTPResponse {
        var headers: HTTPHeaders = terms.vary.map { ["Vary": $0] } ?? [:]
        if let status = problem.cacheStatus { headers.append("Cache-Status", status) }
        log.failed(problem, host: host)
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
        guard parser.namesPage(request.target) else {
            varies = parser.namesNegotiation(request.target)
            return
        }
        varies = true
        isPage = AcceptField(request.headers("Accept")).prefersPage
    }
}
