/// Interprets the fields of a complete head that affect the connection: target, host, body framing and persistence.
enum HeadSemantics {
    static func apply(to head: inout RequestHead) throws(HTTPProtocolError) {
        let host = try soleHost(head)
        try RequestTarget.resolve(&head, host: host)
        try readFraming(&head)
        readPersistence(&head)
        try readExpectation(&head)
    }

    /// Returns the range of the only `Host` field (RFC 9112 section 3.2).
    private static func soleHost(_ head: RequestHead) throws(HTTPProtocolError) -> Range<Int>? {
        var found: Range<Int>?
        for field in head.fields where field.known == .host {
            if found != nil { throw .repeatedHost }
            let value = Int(field.value.lowerBound)..<Int(field.value.upperBound)
            guard Authority.isValid(head.bytes.slice(value)) else { throw .malformedHost }
            found = value
        }
        if found == nil, head.minorVersion > 0 { throw .missingHost }
        return found
    }

    /// Reads the body framing (RFC 9112 section 6) strictly: one field must state it once. Even equal lengths in two fields are
    /// refused.
    private static func readFraming(_ head: inout RequestHead) throws(HTTPProtocolError) {
        let isChunked = head.has(.transferEncoding)
        let isSized = head.has(.contentLength)
        guard isChunked || isSized else { return }
        if isChunked && isSized { throw .conflictingFraming }
        var value: UnsafeRawBufferPointer?
        for field in head.fields where field.known == .transferEncoding || field.known == .contentLength {
            if value != nil { throw isSized ? .conflictingFraming : .malformedTransferCoding }
            value = head.bytes.slice(field.value)
        }
        guard let value else { return }
        if isSized {
            guard let length = value.decimal else { throw .malformedContentLength }
            head.framing = length == 0 ? .none : .sized(length)
        } else {
            // HTTP/1.0 has no chunks, so the client or an intermediary is faulty.
            if head.minorVersion == 0 { throw .conflictingFraming }
            guard value.equalsIgnoringCase("chunked") else {
                throw endsWithChunked(value) ? .unsupportedTransferCoding : .malformedTransferCoding
            }
            head.framing = .chunked
        }
    }

    /// Whether `value` is a list of codings that contains `chunked` once, as the last element.
    private static func endsWithChunked(_ value: UnsafeRawBufferPointer) -> Bool {
        var count = 0
        var last = false
        for coding in FieldList(value) {
            last = coding.equalsIgnoringCase("chunked")
            if last { count += 1 }
        }
        return last && count == 1
    }

    private static func readPersistence(_ head: inout RequestHead) {
        head.keepsAlive = head.minorVersion > 0
        guard head.has(.connection) else { return }
        var closes = false
        for field in head.fields where field.known == .connection {
            for option in FieldList(head.bytes.slice(field.value)) {
                if option.equalsIgnoringCase("close") { closes = true }
                if option.equalsIgnoringCase("keep-alive") { head.keepsAlive = true }
            }
        }
        if closes { head.keepsAlive = false }
    }

    /// Reads `Expect` (RFC 9110 section 10.1.1), a list that is ignored for HTTP/1.0.
    private static func readExpectation(_ head: inout RequestHead) throws(HTTPProtocolError) {
        guard head.minorVersion > 0, head.has(.expect) else { return }
        for field in head.fields where field.known == .expect {
            for expectation in FieldList(head.bytes.slice(field.value)) {
                guard expectation.equalsIgnoringCase("100-continue") else { throw .expectationFailed }
                head.expectsContinue = head.framing != .none
            }
        }
    }
}
