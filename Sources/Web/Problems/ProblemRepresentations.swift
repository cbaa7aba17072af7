internal import HTTP
internal import Renditions

/// Problems as JSON documents (RFC 9457).
enum ProblemDocument {
    static let contentType = "application/problem+json"

    /// Returns the response for a problem.
    ///
    /// - Parameters:
    ///   - secondsLeft: The seconds for which the request is valid; nil for no limit.
    ///   - isStorable: Whether caches may store responses to the request at all; false for uploads.
    ///   - contentType: The media type, if the caller replaces the body.
    static func response(
        _ problem: Problem, headers: HTTPHeaders = HTTPHeaders(), secondsLeft: Int64? = nil, isStorable: Bool = true,
        contentType: String = contentType
    ) -> HTTPResponse {
        var headers = headers
        headers.append("Cache-Control", isStorable ? cacheControl(problem, secondsLeft) : "no-store")
        if let seconds = problem.retryAfter { headers.append("Retry-After", String(seconds)) }
        if problem.status == 401 { headers.append("WWW-Authenticate", "Bearer") }
        headers.append("Content-Type", contentType)
        headers.append("X-Content-Type-Options", "nosniff")
        return HTTPResponse(status: problem.status, headers: headers, body: .bytes(json(problem)))
    }

    /// Shared caches may store only errors that the source causes, for a minute and no longer than the request is valid.
    private static func cacheControl(_ problem: Problem, _ secondsLeft: Int64?) -> String {
        let isOfService = [Problem.notFoundCode, Problem.notReady.code].contains(problem.code)
        let isOfSource = [404, 410, 415, 422].contains(problem.status) && !isOfService
        return isOfSource ? "public, max-age=\(min(60, secondsLeft ?? 60))" : "no-store"
    }

    struct Content: Encodable, Equatable {
        var type = "about:blank"
        var title: String
        var status: Int
        var detail: String
        var code: String

        init(_ problem: Problem) {
            title = HTTPStatus.reason(problem.status)
            status = problem.status
            detail = problem.detail
            code = problem.code
        }
    }

    private static func json(_ problem: Problem) -> [UInt8] {
        JSONText.encode(Content(problem))
    }
}

extension HTTPReply {
    /// The response of work that suspends, or the document of its problem.
    static func attempt(_ work: @escaping @Sendable () async throws(Problem) -> HTTPResponse) -> HTTPReply {
        .later {
            do throws(Problem) {
                return try await work()
            } catch {
                return ProblemDocument.response(error)
            }
        }
    }
}

/// Problems as HTML, for browsers that open the address of a player page.
struct ErrorPage: Sendable {
    let version: String
    private let template = PageTemplate(PackageResources.error_html)
    private let policy = PagePolicy.value(style: PackageResources.home_css, script: nil, ["form-action 'none'"])

    /// Returns the response for a problem, with the status and fields of its JSON document.
    func page(_ problem: Problem, headers: HTTPHeaders = HTTPHeaders(), secondsLeft: Int64? = nil) -> HTTPResponse {
        var response = ProblemDocument.response(
            problem, headers: headers, secondsLeft: secondsLeft, contentType: "text/html; charset=utf-8")
        response.headers.append("Content-Security-Policy", policy)
        response.headers.append("Referrer-Policy", "no-referrer")
        // It is shown in the same frames as the page.
        response.headers.append("Cross-Origin-Embedder-Policy", "require-corp")
        response.headers.append("Cross-Origin-Resource-Policy", "cross-origin")
        response.body = .bytes(Array(html(problem).utf8))
        return response
    }

    /// The text of the page.
    func html(_ problem: Problem) -> String {
        template.filled(
            [
                "detail": problem.detail, "status": String(problem.status), "code": problem.code,
                "reason": HTTPStatus.reason(problem.status), "version": version,
            ], markup: ["style": String(decoding: PackageResources.home_css, as: UTF8.self)])
    }
}
