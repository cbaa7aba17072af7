internal import CCurl
internal import Glibc

/// The head of a response, read line by line, with the fields that matter here. A pure value.
struct ResponseHead {
    /// The status of the latest head: an interim one (1xx) is followed by another. 0 before the first.
    private(set) var status = 0
    /// Whether the head of the final response has ended.
    private(set) var isComplete = false
    /// The raw value of `Location`.
    private(set) var location: [UInt8]?
    private(set) var contentLength: Int?
    /// The codings of the body, in the order in which they were applied.
    private(set) var contentCodings: [String] = []
    /// The size of the whole representation if the body is all of it; nil without a `Content-Range` of such a body.
    private(set) var wholeRange: Int?
    private(set) var cacheDirectives = CacheDirectives()
    /// Bytes of all lines so far, including interim responses.
    private(set) var size = 0

    private var etag: String?
    private var lastModified: String?
    private var retryAfterText: String?
    private var cacheControl = ""
    private var date: String?
    private var expires: String?
    /// Seconds; nil before the first `Age`.
    private var age: Int?

    var validators: SourceValidators { SourceValidators(etag: etag, lastModified: lastModified) }

    /// Receives one line with its line end.
    ///
    /// - Returns: An error in the head, or nil.
    mutating func receive(_ line: UnsafeRawBufferPointer, maxSize: Int) -> String? {
        size += line.count
        if size > maxSize { return "head over \(maxSize) bytes" }
        // Trailers of a chunked body are ignored.
        if isComplete { return nil }
        let text = Self.trimmed(line[...])
        if text.isEmpty {
            finish()
            return nil
        }
        if line.starts(with: "HTTP/".utf8) { return begin(text) }
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        return take(
            name: String(decoding: text[..<colon], as: UTF8.self).lowercased(),
            value: Self.trimmed(text[(colon + 1)...]))
    }

    /// `Retry-After` relative to `now`, at most a day; nil if the time has passed.
    func retryAfter(now: Int) -> Duration? {
        guard let text = retryAfterText else { return nil }
        let seconds = Int(text) ?? (curl_getdate(text, nil) - now)
        return seconds > 0 ? .seconds(min(seconds, 86_400)) : nil
    }

    private mutating func begin(_ line: Slice<UnsafeRawBufferPointer>) -> String? {
        let size = size
        self = ResponseHead()
        self.size = size
        let parts = line.split(separator: 0x20, omittingEmptySubsequences: true)
        guard parts.count >= 2, parts[1].count == 3, let status = Int(String(decoding: parts[1], as: UTF8.self)), status >= 100
        else { return "no status" }
        self.status = status
        return nil
    }

    private mutating func finish() {
        guard status >= 200 else { return }
        isComplete = true
        cacheDirectives = CacheDirectives(cacheControl, expiry: expiry, age: age ?? 0)
    }

    /// Seconds from `Date` to `Expires`. An invalid date, such as `0`, is in the past (RFC 9111 section 5.3).
    private var expiry: Int? {
        guard let expires else { return nil }
        let end = curl_getdate(expires, nil)
        let start = date.map { curl_getdate($0, nil) } ?? -1
        return end < 0 ? 0 : max(0, end - (start < 0 ? time(nil) : start))
    }

    private mutating func take(name: String, value: Slice<UnsafeRawBufferPointer>) -> String? {
        switch name {
        case "location":
            if location == nil { location = Array(value) }
        case "content-length":
            guard value.count <= 18, let length = Int(Self.text(value)), value.allSatisfy({ (0x30...0x39).contains($0) })
            else { return "Content-Length is no number" }
            if let known = contentLength, known != length { return "two different Content-Length fields" }
            contentLength = length
        case "transfer-encoding":
            // Only chunked is acceptable without a TE field (RFC 9110 section 10.1.4). libcurl would decompress a body that
            // was not requested to be compressed, and `Content-Length` and the size limit would no longer be about the same bytes.
            let codings = Self.text(value).lowercased().split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
            guard codings.allSatisfy({ $0 == "chunked" || $0 == "identity" }) else { return "Transfer-Encoding is not chunked" }
        case "content-encoding":
            contentCodings += Self.text(value).lowercased().split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
                .filter { !$0.isEmpty }
        case "content-range": wholeRange = Self.wholeRange(Self.text(value))
        case "etag": etag = Self.text(value)
        case "last-modified": lastModified = Self.text(value)
        case "retry-after": retryAfterText = Self.text(value)
        case "date": date = Self.text(value)
        case "expires": expires = Self.text(value)
        case "age": age = age ?? Self.age(value)
        case "cache-control": cacheControl += "," + Self.text(value)
        default: break
        }
        return nil
    }

    /// The size in `bytes 0-9/10`, where the range is all of it (RFC 9110 section 14.4).
    private static func wholeRange(_ text: String) -> Int? {
        let parts = text.split(whereSeparator: { " -/".contains($0) })
        guard parts.count == 4, parts[0].lowercased() == "bytes", parts[1] == "0", let last = Int(parts[2]),
            let size = Int(parts[3]), (1...(1 << 53)).contains(size), last == size - 1
        else { return nil }
        return size
    }

    /// The first member of `Age`; 0 if it is not a number (RFC 9111 section 5.1). A number that is too large counts as 2³¹.
    private static func age(_ value: Slice<UnsafeRawBufferPointer>) -> Int {
        let first = trimmed(value.prefix(while: { $0 != UInt8(ascii: ",") }))
        guard !first.isEmpty, first.allSatisfy({ (0x30...0x39).contains($0) }) else { return 0 }
        return min(Int(text(first)) ?? .max, 1 << 31)
    }

    private static func text(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        String(decoding: bytes, as: UTF8.self)
    }

    private static func trimmed(_ bytes: Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
        let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0d || byte == 0x0a }
        var rest = bytes.drop(while: isBlank)
        while let last = rest.last, isBlank(last) { rest.removeLast() }
        return rest
    }
}
