internal import HTTP

/// A problem as a page, for people who open the address of a player page.
struct ErrorPage: Sendable {
    /// The version of the program.
    let version: String
    private let template = PageTemplate(PackageResources.error_html)
    private let policy = PagePolicy.value(style: PackageResources.home_css, script: nil, ["form-action 'none'"])

    /// The response for a problem, with the status and fields that the JSON document has.
    ///
    /// - Parameter headers: Fields of the answer, such as `Allow`.
    func response(_ problem: Problem, headers: HTTPHeaders = HTTPHeaders()) -> HTTPResponse {
        var response = ProblemDocument.response(problem, headers: headers, contentType: "text/html; charset=utf-8")
        response.headers.append("Content-Security-Policy", policy)
        response.headers.append("Referrer-Policy", "no-referrer")
        response.headers.append("X-Content-Type-Options", "nosniff")
        response.body = .bytes(Array(text(problem).utf8))
        return response
    }

    func text(_ problem: Problem) -> String {
        template.filled(
            [
                "detail": problem.detail, "status": String(problem.status), "code": problem.code,
                "reason": HTTPStatus.reason(problem.status), "version": version,
            ], markup: ["style": String(decoding: PackageResources.home_css, as: UTF8.self)])
    }
}
