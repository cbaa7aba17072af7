package import HTTP
internal import Renditions

/// Problems as JSON documents (RFC 9457).
package enum ProblemDocument {
    static let contentType = "application/problem+json"

    /// The response for a problem.
    ///
    /// - Parameters:
    ///   - headers: Fields of the answer, such as `Allow`.
    ///   - contentType: The media type, where the caller replaces the body.
    package static func response(
        _ problem: Problem, headers: HTTPHeaders = HTTPHeaders(), contentType: String = contentType
    ) -> HTTPResponse {
        var headers = headers
        headers.append("Cache-Control", cacheControl(problem.status))
        if let seconds = problem.retryAfter { headers.append("Retry-After", String(seconds)) }
        if problem.status == 401 { headers.append("WWW-Authenticate", "Bearer") }
        headers.append("Content-Type", contentType)
        return HTTPResponse(status: problem.status, headers: headers, body: .bytes(json(problem)))
    }

    /// Shared caches may repeat for a minute what is wrong with a source, and nothing else.
    private static func cacheControl(_ status: Int) -> String {
        switch status {
        case 404, 410, 415, 422: "public, max-age=60"
        default: "no-store"
        }
    }

    private struct Document: Encodable {
        var type = "about:blank"
        var title: String
        var status: Int
        var detail: String
        var code: String
    }

    private static func json(_ problem: Problem) -> [UInt8] {
        JSONText.encode(
            Document(
                title: HTTPStatus.reason(problem.status), status: problem.status, detail: problem.detail, code: problem.code))
    }
}
