internal import HTTP

/// The statuses and codes of all problems (docs/api.md, errors). The document at `/openapi.json` derives from it, and a test
/// compares it with the problems that the code creates.
enum ProblemTable {
    struct Row: Sendable, Hashable {
        let status: Int
        let code: String

        init(_ status: Int, _ code: String) {
            self.status = status
            self.code = code
        }
    }

    static let request = [
        Row(400, "bad_request"), Row(400, "bad_option"), Row(400, "bad_source_url"), Row(404, "not_found"),
    ]
    /// The problem of a request that does not wait for its rendition.
    static let waiting = [Row(404, "not_ready")]
    /// The problem of a request that refuses a rendition that is larger than its source.
    static let larger = [Row(404, "not_smaller")]
    /// The problem of a request that accepts only a stored rendition.
    static let store = [Row(504, "not_stored")]
    static let access = [
        Row(403, "bad_signature"), Row(403, "expired_signature"), Row(403, "option_not_allowed"),
        Row(403, "source_not_allowed"),
    ]
    static let source = [
        Row(404, "source_not_found"), Row(410, "source_gone"), Row(502, "source_failed"), Row(502, "source_unreachable"),
        Row(504, "source_timeout"),
    ]
    static let conversion = [
        Row(415, "not_an_animation"), Row(422, "corrupt_gif"), Row(422, "unsupported"), Row(422, "too_large"),
        Row(422, "over_budget"),
        Row(422, "transcode_failed"), Row(422, "flashing"), Row(451, "blocked"),
    ]
    /// Problems of requests with an idempotency key.
    static let repeated = [Row(409, "request_in_progress"), Row(422, "idempotency_key_reused")]
    /// Problems of clients that exceed a per-client limit.
    static let rate = [Row(429, "rate_limited")]
    /// Problems of a server without capacity.
    static let load = [Row(503, "overloaded"), Row(503, "draining")]
    static let admin = [Row(401, "unauthorized")]
    /// The problem of a format that oEmbed defines and this service does not offer.
    static let format = [Row(501, "not_implemented")]
    /// Problems of every route: the HTTP engine's, and an unsupported method.
    static let everywhere =
        Set(HTTPProtocolError.allCases.map { Row($0.status, $0.code) }).sorted { $0.status < $1.status }
        + [Row(405, "method_not_allowed")]

    static let all =
        request + waiting + larger + store + access + source + conversion + repeated + rate + load + admin + format + everywhere
}
