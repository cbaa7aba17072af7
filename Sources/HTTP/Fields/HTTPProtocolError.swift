/// The reasons for which the engine itself refuses a request, before or without the handler.
///
/// Each has a status, a stable code for problem documents and a public sentence. ``HTTPHandler/response(to:)`` creates
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
    package var status: Int {
        switch self {
        case .malformedRequestLine, .malformedTarget, .malformedField, .bareLineFeed, .missingHost, .repeatedHost,
            .malformedHost, .conflictingFraming, .malformedContentLength, .malformedTransferCoding, .malformedChunk:
            400
        case .requestTimeout: 408
        case .preconditionFailed: 412
        case .contentTooLarge: 413
        case .targetTooLong: 414
        case .rangeNotSatisfiable: 416
        case .expectationFailed: 417
        case .headTooLarge: 431
        case .handlerFailed: 500
        case .unsupportedTransferCoding, .methodNotImplemented: 501
        case .tooManyConnections: 503
        case .versionNotSupported: 505
        }
    }

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

    /// The seconds after which the request may be repeated; nil if it would be refused again.
    package var retryAfter: Int? {
        if case .tooManyConnections = self { 2 } else { nil }
    }

    /// A public sentence about the reason.
    package var sentence: String {
        switch self {
        case .malformedRequestLine: "The request line is malformed."
        case .malformedTarget: "The request target is not a valid URI."
        case .malformedField: "A header field is malformed."
        case .bareLineFeed: "A line ends without a carriage return."
        case .missingHost: "The Host field is missing."
        case .repeatedHost: "There is more than one Host field."
        case .malformedHost: "The Host field is malformed."
        case .conflictingFraming: "The length of the body is given in conflicting ways."
        case .malformedContentLength: "The Content-Length field is malformed."
        case .malformedTransferCoding: "The Transfer-Encoding field is malformed."
        case .malformedChunk: "The chunked body is malformed."
        case .requestTimeout: "The request took too long to arrive."
        case .preconditionFailed: "A precondition of the request does not hold."
        case .contentTooLarge: "The body is larger than allowed."
        case .targetTooLong: "The request target is too long."
        case .rangeNotSatisfiable: "No part of the requested range exists."
        case .expectationFailed: "The expectation cannot be met."
        case .headTooLarge: "The header fields are too large."
        case .handlerFailed: "The request could not be handled."
        case .unsupportedTransferCoding: "The transfer coding is not supported."
        case .methodNotImplemented: "The method is not supported."
        case .tooManyConnections: "This client has too many connections open."
        case .versionNotSupported: "The HTTP version is not supported."
        }
    }
}
