/// Status lines, and the effect of a status on the framing of a response.
package enum HTTPStatus {
    /// Appends a status line such as `HTTP/1.1 200 OK`, with its CRLF.
    static func appendLine(_ status: Int, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "HTTP/1.1 \(status) \(reason(status))\r\n".utf8)
    }

    /// Whether a response with this status never has a body (RFC 9112 section 6.3).
    static func isBodiless(_ status: Int) -> Bool { status == 204 || status == 304 || status < 200 }

    /// Returns the reason phrase of a status that the server sends (RFC 9110 section 15; RFC 6585 for 429 and 431).
    package static func reason(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 202: "Accepted"
        case 204: "No Content"
        case 206: "Partial Content"
        case 302: "Found"
        case 304: "Not Modified"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 415: "Unsupported Media Type"
        case 416: "Range Not Satisfiable"
        case 417: "Expectation Failed"
        case 422: "Unprocessable Content"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 451: "Unavailable For Legal Reasons"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        default: "Status"
        }
    }
}
