internal import HTTP

/// Builds the responses of problems, and logs those of sources.
struct ProblemResponder: Sendable {
    let errorPage: ErrorPage
    let log: ResponseLog
    /// Returns the seconds until a time, which is in seconds since 1970.
    let secondsLeft: @Sendable (Int64) -> Int64

    /// Returns the response for a problem in the representation that the client prefers.
    func response(
        _ problem: Problem, _ form: ProblemForm, _ headers: HTTPHeaders = HTTPHeaders(), expires: Int64? = nil
    ) -> HTTPResponse {
        var headers = headers
        if form.varies { headers.append("Vary", "Accept") }
        let left = expires.map(secondsLeft)
        return form.isPage
            ? errorPage.page(problem, headers: headers, secondsLeft: left)
            : ProblemDocument.response(problem, headers: headers, secondsLeft: left, isStorable: form.isStorable)
    }

    /// Returns the response for a failed rendition, and logs the problem, unless it was remembered or the client has left.
    ///
    /// - Parameter host: The host of the source; nil for an upload.
    func failure(
        _ problem: Problem, host: String?, _ terms: ResponseTerms, form: ProblemForm = .document
    ) -> HTTPResponse {
        var headers: HTTPHeaders = terms.vary.map { ["Vary": $0] } ?? [:]
        if let status = problem.cacheStatus { headers.append("Cache-Status", status) }
        log.failed(problem, host: host)
        return response(problem, form, headers, expires: terms.expires)
    }
}

/// The representation of a problem: a JSON document or, for requests of a player page whose client prefers HTML, a page.
struct ProblemForm: Sendable {
    var isPage = false
    /// Whether the representation depends on `Accept`.
    var varies = false
    /// Whether caches may store it, if the problem permits that.
    var isStorable = true

    static let document = ProblemForm()
    /// The form of an upload's problems.
    static let unstored = ProblemForm(isStorable: false)
}

extension ProblemForm {
    init(_ request: borrowing HTTPRequest, _ parser: RouteParser) {
        isStorable = request.method == .get || request.method == .head
        guard parser.namesPage(request.target) else {
            varies = parser.namesNegotiation(request.target)
            return
        }
        varies = true
        isPage = AcceptField(request).prefersPage
    }
}
