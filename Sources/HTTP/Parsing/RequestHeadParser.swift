/// Parses request heads (RFC 9112) without the leniency that the RFC permits: every line ends with CRLF, one space separates
/// the parts of the request line, and no field is folded. A head that two servers could interpret differently is refused.
///
/// A pure value that stores nothing between calls. While a head is incomplete, the caller calls again with the same bytes plus
/// new ones, preferably after another line has ended; ``HeadLimits/fields`` bounds the number of such calls.
struct RequestHeadParser: Sendable {
    var limits = HeadLimits()

    /// Parses the head at the start of `bytes` into `head`.
    ///
    /// - Returns: Whether the head is complete; otherwise the content of `head` is meaningless.
    /// - Throws: The first error as soon as it is detectable, even in an incomplete head.
    func parse(_ bytes: UnsafeRawBufferPointer, into head: inout RequestHead) throws(HTTPProtocolError) -> Bool {
        head.reset(bytes)
        var cursor = HeadCursor(bytes)
        guard try parseRequestLine(&cursor, into: &head), try parseFields(&cursor, into: &head) else {
            if bytes.count >= limits.head { throw .headTooLarge }
            return false
        }
        if cursor.position > limits.head { throw .headTooLarge }
        head.length = cursor.position
        try HeadSemantics.apply(to: &head)
        return true
    }

    /// Parses `method SP request-target SP HTTP-version CRLF`. Returns false if it is incomplete.
    private func parseRequestLine(
        _ cursor: inout HeadCursor, into head: inout RequestHead
    ) throws(HTTPProtocolError) -> Bool {
        // Empty lines before a request are skipped (RFC 9112 section 2.2), but count towards the head limit.
        while cursor.next == 13 {
            guard try cursor.skipLineEnd(orThrow: .malformedRequestLine) else { return false }
        }
        let method = cursor.skipToken()
        if method.count > limits.method { throw .methodNotImplemented }
        guard let space = cursor.next else { return false }
        guard space == 0x20, !method.isEmpty else { throw .malformedRequestLine }
        // Later refusals need the method: the response to HEAD has no content (RFC 9110 section 9.3.2).
        head.method = HTTPMethod(cursor.bytes.slice(method))
        cursor.advance()

        let target = cursor.skipVisible()
        if target.count > limits.target { throw .targetTooLong }
        guard let end = cursor.next else { return false }
        guard end == 0x20, !target.isEmpty else { throw end > 0x7E ? .malformedTarget : .malformedRequestLine }
        cursor.advance()

        guard let version = try cursor.skipVersion() else { return false }
        guard try cursor.skipLineEnd(orThrow: .malformedRequestLine) else { return false }
        guard version.major == 1 else { throw .versionNotSupported }
        head.minorVersion = min(version.minor, 1)
        head.methodRange = method
        head.target = target
        return true
    }

    /// Parses `*( field-name ":" OWS field-value OWS CRLF ) CRLF`. Returns false if it is incomplete.
    private func parseFields(_ cursor: inout HeadCursor, into head: inout RequestHead) throws(HTTPProtocolError) -> Bool {
        while true {
            guard let first = cursor.next else { return false }
            if first == 13 { return try cursor.skipLineEnd(orThrow: .malformedField) }
            if head.fields.count == limits.fields { throw .headTooLarge }

            // A blank before the name would be a folded line, and a blank before the colon allows request smuggling (RFC 9112
            // sections 5.1 and 5.2). Blanks are not token characters.
            let name = cursor.skipToken()
            guard let colon = cursor.next else { return false }
            guard colon == UInt8(ascii: ":"), !name.isEmpty else {
                throw colon == 10 ? .bareLineFeed : .malformedField
            }
            cursor.advance()
            guard let value = try cursor.skipFieldValue() else { return false }
            guard try cursor.skipLineEnd(orThrow: .malformedField) else { return false }
            head.append(
                RequestHead.Field(
                    name: UInt32(name.lowerBound)..<UInt32(name.upperBound),
                    value: UInt32(value.lowerBound)..<UInt32(value.upperBound),
                    known: KnownField(cursor.bytes.slice(name))))
        }
    }
}

struct HeadLimits: Sendable {
    /// The maximum length of the request target in bytes.
    var target = 16 * 1024
    /// The maximum length of the whole head in bytes.
    var head = 32 * 1024
    var fields = 100
    /// The maximum length of the method in bytes; the longest registered method has 17.
    var method = 24
}
