internal import CSystem
internal import Glibc
internal import HTTPClient

/// The information about a source in a response head. A pure value.
struct ResponseHead {
    let status: Int
    /// The delay that the origin asks for.
    let retryAfter: Duration?
    /// The first raw value of `Location` that is not empty.
    private(set) var location: [UInt8]?
    private(set) var contentLength: Int?
    private var isChunked = false
    /// The codings of the body, in the order in which they were applied.
    private(set) var contentCodings: [String] = []
    /// The size of the whole representation, if `Content-Range` says that the body contains all of it; nil otherwise.
    private(set) var wholeRange: Int?
    private(set) var cacheDirectives = CacheDirectives()
    private(set) var fault: String?

    private var etag: String?
    private var lastModified: String?
    private var cacheControl = ""
    /// Whether the response depends on more than the request (`Vary: *`).
    private var variesUnpredictably = false
    private var date: String?
    private var expires: String?
    /// The age in seconds; nil before the first `Age` field.
    private var age: Int?

    var validators: SourceValidators { SourceValidators(etag: etag, lastModified: lastModified) }

    init(_ head: HTTPHead) {
        status = head.status
        retryAfter = head.retryAfter(now: time(nil))
        for (name, value) in head.fields where fault == nil { fault = take(name, value) }
        // Transfer-Encoding overrides Content-Length (RFC 9112 section 6.3).
        if isChunked { contentLength = nil }
        cacheDirectives = CacheDirectives(cacheControl, expiry: expiry, age: age ?? 0)
        // A stored response with `Vary: *` never matches a request (RFC 9111 section 4.1).
        if variesUnpredictably { cacheDirectives.requireValidation() }
    }

    /// Seconds from `Date` to `Expires`. An invalid date, such as `0`, is in the past (RFC 9111 section 5.3).
    private var expiry: Int? {
        guard let expires else { return nil }
        let end = curl_getdate(expires, nil)
        let start = date.map { curl_getdate($0, nil) } ?? -1
        return end < 0 ? 0 : max(0, end - (start < 0 ? time(nil) : start))
    }

    /// Reads a field. Returns an error in the field, or nil.
    private mutating func take(_ name: String, _ value: [UInt8]) -> String? {
        switch name {
        case "location":
            // Browsers and curl skip an empty value too.
            if location == nil, !value.isEmpty { location = value }
        case "content-length":
            guard value.count <= 18, let length = Int(Self.text(value)), value.allSatisfy({ (0x30...0x39).contains($0) })
            else { return "Content-Length is not a number" }
            if let known = contentLength, known != length { return "two different Content-Length fields" }
            contentLength = length
        case "transfer-encoding":
            // Only chunked is acceptable without a TE field (RFC 9110 section 10.1.4). libcurl would decompress an unrequested
            // coding, and `Content-Length` and the size limit would apply to different bytes.
            let codings = Self.text(value).lowercased().split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
            guard codings.allSatisfy({ $0 == "chunked" || $0 == "identity" }) else { return "Transfer-Encoding is not chunked" }
            if codings.contains("chunked") { isChunked = true }
        case "content-encoding":
            contentCodings += Self.text(value).lowercased().split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
                .filter { !$0.isEmpty }
        case "content-range": wholeRange = Self.wholeRange(Self.text(value))
        case "etag": etag = Self.text(value)
        case "last-modified": lastModified = Self.text(value)
        case "date": date = Self.text(value)
        case "expires": expires = Self.text(value)
        case "age": age = age ?? Self.age(value)
        case "vary":
            let members = Self.text(value).split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
            if members.contains("*") { variesUnpredictably = true }
        case "cache-control": cacheControl += "," + Self.text(value)
        default: break
        }
        return nil
    }

    /// Returns the size in `bytes 0-9/10`, if the range covers the whole representation (RFC 9110 section 14.4); nil otherwise.
    private static func wholeRange(_ text: String) -> Int? {
        let parts = text.split(whereSeparator: { " -/".contains($0) })
        guard parts.count == 4, parts[0].lowercased() == "bytes", parts[1] == "0", let last = Int(parts[2]),
            let size = Int(parts[3]), (1...(1 << 53)).contains(size), last == size - 1
        else { return nil }
        return size
    }

    /// Returns the first member of `Age`; 0 if not a number (RFC 9111 section 5.1). A number that is too large counts as 2³¹.
    private static func age(_ value: [UInt8]) -> Int {
        var first = value.prefix { $0 != UInt8(ascii: ",") }
        while let last = first.last, last == 0x20 || last == 0x09 { first.removeLast() }
        guard !first.isEmpty, first.allSatisfy({ (0x30...0x39).contains($0) }) else { return 0 }
        return min(Int(text(first)) ?? .max, 1 << 31)
    }

    private static func text(_ bytes: some Collection<UInt8>) -> String {
        String(decoding: bytes, as: UTF8.self)
    }
}
