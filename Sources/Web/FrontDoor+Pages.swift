internal import Fetch
internal import HTTP

// Pages are composed of stored facts, which are found like renditions.
extension FrontDoor {
    /// The player page of a rendition.
    func page(_ asked: ParsedTarget, _ request: borrowing HTTPRequest) throws(Problem) -> HTTPReply {
        let visit = self.visit(request)
        let page = try pages.page(asked, target: request.target, visit)
        let form = ProblemForm(request, parser)
        return later(request) { self.answered(await self.pages.player(page, visit), host: page.source.host, form) }
    }

    /// The oEmbed document of a page.
    func oembed(_ items: [QueryItem], _ request: borrowing HTTPRequest) throws(Problem) -> HTTPReply {
        let visit = self.visit(request)
        let query = try OEmbed.Query(items)
        let page = try pages.page(embedding: query.url, visit)
        return later(request) { self.answered(await self.pages.oembed(query, page, visit), host: page.source.host) }
    }

    /// The client's part in a page.
    func visit(_ request: borrowing HTTPRequest) -> PageDesk.Visit {
        PageDesk.Visit(
            host: request.host, scheme: request.scheme, urgency: PriorityField.urgency(request.header("Priority")),
            allowance: access.allowance(request))
    }

    /// The response of a page; nil stands for a client that has left.
    func answered(
        _ outcome: Result<HTTPResponse, Problem>?, host: String?, _ form: ProblemForm = .document
    ) -> HTTPResponse {
        switch outcome {
        case .success(let response)?: response
        case .failure(let problem)?: failed(problem, host: host, form: form)
        case nil: ProblemDocument.response(.overloaded)  // It is sent to no one.
        }
    }

    /// The response for a problem in the form that the client prefers.
    func response(_ problem: Problem, _ form: ProblemForm, headers: HTTPHeaders = HTTPHeaders()) -> HTTPResponse {
        var headers = headers
        if form.varies { headers.append("Vary", "Accept") }
        return form.isPage
            ? pages.errors.response(problem, headers: headers) : ProblemDocument.response(problem, headers: headers)
    }
}

/// How a problem is written: as a JSON document or, where the request is for a player page and its client prefers HTML, as a
/// page.
struct ProblemForm: Sendable {
    var isPage = false
    /// Whether the form depends on `Accept`.
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
