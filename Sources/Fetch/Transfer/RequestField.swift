internal import SystemIO

/// Header fields from the settings that are sent with requests, as `Name: value`.
package enum RequestField {
    /// Fields that the client sets itself, or that would change the meaning of a request.
    private static let reserved: Set = [
        "accept-encoding", "cdn-loop", "connection", "content-length", "expect", "host", "if-modified-since", "if-none-match",
        "range", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    /// Whether `text` is a field that may be sent (RFC 9110 sections 5.1 and 5.5).
    package static func isValid(_ text: String) -> Bool {
        guard let colon = text.firstIndex(of: ":") else { return false }
        let name = text[..<colon]
        let value = text[text.index(after: colon)...].drop { $0 == " " }
        let isToken = name.utf8.allSatisfy { $0.isLetterOrDigit || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }
        return !name.isEmpty && isToken && !reserved.contains(name.lowercased()) && !value.isEmpty
            && value.utf8.allSatisfy { (0x20...0x7e).contains($0) }
    }
}
