internal import CSystem
internal import Glibc

/// A response head, parsed line by line. A pure value.
package struct HTTPHead: Sendable {
    /// The status of the latest head: interim responses (1xx) are followed by further heads. 0 before the first head.
    package private(set) var status = 0
    /// Whether the final response's head is complete.
    package private(set) var isComplete = false
    /// Header fields in order of arrival, with lowercase names and trimmed values.
    package private(set) var fields: [(name: String, value: [UInt8])] = []
    /// Total bytes of all lines so far, including interim responses.
    private var size = 0

    package init() {}

    /// Receives one line, including its line break.
    ///
    /// - Returns: A description of an error in the head, or nil.
    package mutating func receive(_ line: UnsafeRawBufferPointer, maxSize: Int) -> String? {
        size += line.count
        if size > maxSize { return "head over \(maxSize) bytes" }
        // Trailers of a chunked body are ignored.
        if isComplete { return nil }
        let text = line[...].trimmed
        if line.first == 0x20 || line.first == 0x09 {
            // A folded line continues the field before it (RFC 9112 section 5.2).
            if let last = fields.indices.last, !text.isEmpty {
                fields[last].value += (fields[last].value.isEmpty ? [] : [0x20]) + text
            }
            return nil
        }
        if text.isEmpty {
            isComplete = status >= 200
            return nil
        }
        if line.starts(with: "HTTP/".utf8) { return begin(text) }
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        // Blanks before the colon are not part of the name (RFC 9112 section 5.1).
        let name = String(decoding: text[..<colon].trimmed, as: UTF8.self).lowercased()
        fields.append((name, Array(text[(colon + 1)...].trimmed)))
        return nil
    }

    private mutating func begin(_ line: Slice<UnsafeRawBufferPointer>) -> String? {
        let size = size
        self = HTTPHead()
        self.size = size
        let parts = line.split(separator: 0x20, omittingEmptySubsequences: true)
        guard parts.count >= 2, parts[1].count == 3, let status = Int(String(decoding: parts[1], as: UTF8.self)), status >= 100
        else { return "no status" }
        self.status = status
        return nil
    }

    /// Returns the value of the last field with this lowercase name.
    package func text(_ name: String) -> String? {
        fields.last { $0.name == name }.map { String(decoding: $0.value, as: UTF8.self) }
    }

    /// `Content-Length`, if it is a number.
    var contentLength: Int? { text("content-length").flatMap { Int($0) } }

    /// The longest body that is worth reading to its end for the reuse of its connection, in bytes.
    package static let shortBody = 16 << 10

    /// Whether a call that needs only the head waits for the end of the body, so that the connection can be reused. Without a
    /// declared length or chunks, a body ends with the connection, which the server may keep open.
    package var hasShortBody: Bool {
        if status == 204 || status == 304 { return true }
        return contentLength.map { $0 <= Self.shortBody } ?? (text("transfer-encoding") != nil)
    }

    /// Returns `Retry-After` relative to `now`, at most a day; nil if the time has passed.
    package func retryAfter(now: Int) -> Duration? {
        guard let text = text("retry-after") else { return nil }
        let seconds = Int(text) ?? (curl_getdate(text, nil) - now)
        return seconds > 0 ? .seconds(min(seconds, 86_400)) : nil
    }
}

extension Slice<UnsafeRawBufferPointer> {
    fileprivate var trimmed: Self {
        let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0d || byte == 0x0a }
        var rest = drop(while: isBlank)
        while let last = rest.last, isBlank(last) { rest.removeLast() }
        return rest
    }
}
