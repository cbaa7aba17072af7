/// The request fields that the engine itself reads, recognised once while the head is parsed.
enum KnownField: UInt8 {
    case unknown
    case host, range, expect, connection, forwarded
    case ifMatch, ifNoneMatch, ifModifiedSince, ifUnmodifiedSince, ifRange
    case contentLength, transferEncoding
    case requestID, forwardedFor

    /// The field of that name; `name` is known to hold token characters only.
    init(_ name: UnsafeRawBufferPointer) {
        let candidate: (StaticString, KnownField)
        switch name.count {
        case 4: candidate = ("host", .host)
        case 5: candidate = ("range", .range)
        case 6: candidate = ("expect", .expect)
        case 8:
            let match = ("if-match" as StaticString, KnownField.ifMatch)
            candidate = name[3].lowercased == UInt8(ascii: "r") ? ("if-range", .ifRange) : match
        case 9: candidate = ("forwarded", .forwarded)
        case 10: candidate = ("connection", .connection)
        case 12: candidate = ("x-request-id", .requestID)
        case 13: candidate = ("if-none-match", .ifNoneMatch)
        case 14: candidate = ("content-length", .contentLength)
        case 15: candidate = ("x-forwarded-for", .forwardedFor)
        case 17:
            let since = ("if-modified-since" as StaticString, KnownField.ifModifiedSince)
            candidate = name[0].lowercased == UInt8(ascii: "t") ? ("transfer-encoding", .transferEncoding) : since
        case 19: candidate = ("if-unmodified-since", .ifUnmodifiedSince)
        default:
            self = .unknown
            return
        }
        self = name.equalsIgnoringCase(candidate.0) ? candidate.1 : .unknown
    }
}
