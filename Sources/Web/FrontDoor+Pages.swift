internal import Fetch
internal import HTTP

// Pages are made of what other requests give: they are asked for as renditions are.
extension FrontDoor {
    /// The player page of a rendition.
    func page(_ asked: ParsedTarget, _ request: borrowing HTTPRequest) -> HTTPReply {
        let visit = self.visit(request)
        let target = request.target
        return .later { self.answered(await self.pages.player(asked, target: target, visit), host: asked.source?.host) }
    }

    /// Who asks for a page, and how.
    func visit(_ request: borrowing HTTPRequest) -> PageDesk.Visit {
        PageDesk.Visit(
            host: request.host, urgency: PriorityField.urgency(request.header("Priority")), allowance: access.allowance(request)
        )
    }

    /// What became of a page as an answer; nil is a client that has left.
    func answered(_ outcome: Result<HTTPResponse, Problem>?, host: String?) -> HTTPResponse {
        switch outcome {
        case .success(let response)?: response
        case .failure(let problem)?: failed(problem, host: host)
        case nil: ProblemDocument.response(.overloaded)  // The client has left; nobody reads it.
        }
    }
}
