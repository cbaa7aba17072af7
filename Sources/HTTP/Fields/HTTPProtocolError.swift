/// A reason for which the server itself refuses a request, before or without calling the handler.
///
/// Each reason has a status, a stable code for problem documents and a public sentence. ``HTTPHandler/response(to:)`` creates
/// the response.
package enum HTTPProtocolError: Error, Sendable, Hashable, CaseIterable {
    case malformedRequestLine, malformedTarget, malformedField, bareLineFeed
    case missingHost, repeatedHost, malformedHost
    case conflictingFraming, malformedContentLength, malformedTransferCoding, malformedChunk
    case requestTimeout
    case preconditionFailed
    case contentTooLarge
    case targetTooLong
    case rangeNotSatisfiable
    case expectationFailed
    case headTooLarge
    case handlerFailed
    case unsupportedTransferCoding, methodNotImplemented
    case tooManyConnections
    case versionNotSupported

    /// The status code (RFC 9110 section 15, RFC 6585 for 431).
    package var status: Int { row.status }

    /// A public sentence that explains the reason.
    package var sentence: String { row.sentence }

    /// The code for problem documents: one per status.
    package var code: String {
        switch status {
        case 408: "request_timeout"
        case 412: "precondition_failed"
        case 413: "content_too_large"
        case 414: "uri_too_long"
        case 416: "range_not_satisfiable"
        case 417: "expectation_failed"
        case 431: "header_fields_too_large"
        case 500: "internal_error"
        case 501: "not_implemented"
        case 503: "overloaded"
        case 505: "http_version_not_supported"
        default: "bad_request"
        }
    }

    /// The number of seconds after which to retry; nil if the request would be refused again.
    package var retryAfter: Int? {
        if case .tooManyConnections = self { 2 } else { nil }
    }

    private var row: (status: Int, sentence: String) {
        switch self {
        case .malformedRequestLine: (400, "The request line is malformed.")
        case .malformedTarget: (400, "The request target is not a valid URI.")
        case .malformedField: (400, "A header field is malformed.")
        case .bareLineFeed: (400, "A line ends without a carriage return.")
        case .missingHost: (400, "The Host field is missing.")
        case .repeatedHost: (400, "There is more than one Host field.")
        case .malformedHost: (400, "The Host field is malformed.")
        case .conflictingFraming: (400, "The length of the body is given in conflicting ways.")
        case .malformedContentLength: (400, "The Content-Length field is malformed.")
        case .malformedTransferCoding: (400, "The Transfer-Encoding field is malformed.")
        case .malformedChunk: (400, "The chunked body is malformed.")
        case .requestTimeout: (408, "The request took too long to arrive.")
        case .preconditionFailed: (412, "A precondition of the request does not hold.")
        case .contentTooLarge: (413, "The body is larger than allowed.")
        case .targetTooLong: (414, "The request target is too long.")
        case .rangeNotSatisfiable: (416, "No part of the requested range exists.")
        case .expectationFailed: (417, "The expectation cannot be met.")
        case .headTooLarge: (431, "The header fields are too large.")
        case .handlerFailed: (500, "The request could not be handled.")
        case .unsupportedTransferCoding: (501, "The transfer coding is not supported.")
        case .methodNotImplemented: (501, "The method is not supported.")
        case .tooManyConnections: (503, "This client has too many connections open.")
        case .versionNotSupported: (505, "The HTTP version is not supported.")
        }
    }
}
