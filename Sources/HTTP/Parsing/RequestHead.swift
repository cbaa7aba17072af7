/// A parsed request head: a view of the bytes that it was parsed from, valid as long as they are.
///
/// Each loop thread reuses one value for all requests, so that parsing does not allocate.
struct RequestHead {
    /// The ranges of a header field in the head. Values have no surrounding blanks.
    struct Field: Sendable {
        var name: Range<UInt32>
        var value: Range<UInt32>
        var known: KnownField
    }

    /// The bytes of the head, to which all ranges refer.
    private(set) var bytes = UnsafeRawBufferPointer(start: nil, count: 0)
    /// The length of the whole head, including preceding empty lines and the terminating empty line.
    var length = 0
    /// The method; GET if the method of a refused head could not be parsed.
    var method = HTTPMethod.get
    /// The range of the method; empty if the request line could not be parsed.
    var methodRange = 0..<0
    /// The range of the request target; for an absolute-form, the part after the authority (RFC 9112 section 3.2.2).
    var target = 0..<0
    /// The range of the authority in an absolute-form target, otherwise of `Host`. Empty if an HTTP/1.0 client sent none.
    var authority = 0..<0
    /// Whether the target was an absolute-form without a path, which means `/`, or `*` with OPTIONS.
    var hasEmptyPath = false
    /// 0 for HTTP/1.0, otherwise 1.
    var minorVersion: UInt8 = 1
    var framing = BodyFraming.none
    /// Whether the client allows another request on the connection (RFC 9112 section 9.3).
    var keepsAlive = true
    var expectsContinue = false
    private(set) var fields: [Field] = []
    /// A bit set of the known fields that are present.
    private var present: UInt32 = 0

    /// Resets the value for the head at the start of `bytes`, keeping its storage.
    mutating func reset(_ bytes: UnsafeRawBufferPointer) {
        var next = RequestHead()
        swap(&next.fields, &fields)
        next.fields.removeAll(keepingCapacity: true)
        next.bytes = bytes
        self = next
    }

    mutating func append(_ field: Field) {
        fields.append(field)
        present |= field.known.bit
    }

    func has(_ known: KnownField) -> Bool { present & known.bit != 0 }

    /// Whether a field is present that makes the response depend on more than the target.
    var isConditionalOrPartial: Bool {
        let mask =
            KnownField.range.bit | KnownField.ifMatch.bit | KnownField.ifNoneMatch.bit | KnownField.ifModifiedSince.bit
            | KnownField.ifUnmodifiedSince.bit
        return present & mask != 0
    }

    /// Whether a field is present that proxies add.
    var isForwarded: Bool {
        present & (KnownField.forwardedFor.bit | KnownField.forwarded.bit | KnownField.via.bit | KnownField.realIP.bit) != 0
    }

    func first(_ known: KnownField) -> UnsafeRawBufferPointer? {
        guard has(known) else { return nil }
        for field in fields where field.known == known { return bytes.slice(field.value) }
        return nil
    }

    func first(named name: HTTPFieldName) -> UnsafeRawBufferPointer? {
        let wanted = name.bytes
        for field in fields where field.name.count == wanted.count {
            if bytes.slice(field.name).equalsIgnoringCase(wanted) { return bytes.slice(field.value) }
        }
        return nil
    }

    /// Calls `body` with the value of every field with this name, in order.
    func forEachValue(of name: HTTPFieldName, _ body: (UnsafeRawBufferPointer) -> Void) {
        let wanted = name.bytes
        for field in fields where field.name.count == wanted.count {
            if bytes.slice(field.name).equalsIgnoringCase(wanted) { body(bytes.slice(field.value)) }
        }
    }

    /// Calls `body` with the value of every field of this kind, in order.
    func forEach(_ known: KnownField, _ body: (UnsafeRawBufferPointer) -> Void) {
        guard has(known) else { return }
        for field in fields where field.known == known { body(bytes.slice(field.value)) }
    }
}

extension RequestHead {
    /// The method as sent; empty if the request line could not be parsed.
    var methodBytes: UnsafeRawBufferPointer { bytes.slice(methodRange) }

    /// The target in origin-form or asterisk-form; empty if the request line could not be parsed.
    var targetBytes: UnsafeRawBufferPointer {
        guard hasEmptyPath else { return bytes.slice(target) }
        return method == .options ? ("*" as StaticString).bytes : ("/" as StaticString).bytes
    }

    var authorityBytes: UnsafeRawBufferPointer { bytes.slice(authority) }
}

extension UnsafeRawBufferPointer {
    /// Returns the bytes in a field's range.
    func slice(_ range: Range<UInt32>) -> UnsafeRawBufferPointer {
        slice(Int(range.lowerBound)..<Int(range.upperBound))
    }
}

/// The request fields that the server itself reads, recognized once while the head is parsed.
enum KnownField: UInt8 {
    case unknown
    case host, range, expect, connection, forwarded
    case ifMatch, ifNoneMatch, ifModifiedSince, ifUnmodifiedSince, ifRange
    case contentLength, transferEncoding
    case requestID, forwardedFor, forwardedProto, realIP, via

    /// The field as a member of a bit set.
    var bit: UInt32 { 1 << UInt32(rawValue) }

    /// Creates the field with this name. `name` must contain only token characters.
    init(_ name: UnsafeRawBufferPointer) {
        switch name.count {
        case 3: self = name.equalsIgnoringCase("via") ? .via : .unknown
        case 4: self = name.isFieldName("host") ? .host : .unknown
        case 5: self = name.isFieldName("range") ? .range : .unknown
        case 6: self = name.isFieldName("expect") ? .expect : .unknown
        case 8: self = name.isFieldName("if-range") ? .ifRange : name.isFieldName("if-match") ? .ifMatch : .unknown
        case 9: self = name.isFieldName("forwarded") ? .forwarded : name.isFieldName("x-real-ip") ? .realIP : .unknown
        case 10: self = name.isFieldName("connection") ? .connection : .unknown
        case 12: self = name.isFieldName("x-request-id") ? .requestID : .unknown
        case 13: self = name.isFieldName("if-none-match") ? .ifNoneMatch : .unknown
        case 14: self = name.isFieldName("content-length") ? .contentLength : .unknown
        case 15: self = name.isFieldName("x-forwarded-for") ? .forwardedFor : .unknown
        case 17:
            if name.isFieldName("x-forwarded-proto") {
                self = .forwardedProto
            } else if name.isFieldName("transfer-encoding") {
                self = .transferEncoding
            } else {
                self = name.isFieldName("if-modified-since") ? .ifModifiedSince : .unknown
            }
        case 19: self = name.isFieldName("if-unmodified-since") ? .ifUnmodifiedSince : .unknown
        default: self = .unknown
        }
    }
}

extension UnsafeRawBufferPointer {
    /// Whether the bytes equal `lowercase`, ignoring case. They must be token characters, and as many as in `lowercase`.
    ///
    /// The two cases of a letter differ in one bit, which is also set in a hyphen; the byte that differs from a hyphen only in
    /// this bit is not a token character (RFC 9110 section 5.6.2). Setting the bit therefore allows comparing a word at a time.
    @inline(__always)
    fileprivate func isFieldName(_ lowercase: StaticString) -> Bool {
        let name = lowercase.bytes
        func isEqual<Word: FixedWidthInteger>(at offset: Int, _ bit: Word) -> Bool {
            loadUnaligned(fromByteOffset: offset, as: Word.self) | bit
                == name.loadUnaligned(fromByteOffset: offset, as: Word.self)
        }
        guard name.count >= 8 else {
            return isEqual(at: 0, 0x2020_2020 as UInt32) && isEqual(at: name.count - 4, 0x2020_2020 as UInt32)
        }
        var offset = 0
        while offset < name.count - 8 {
            guard isEqual(at: offset, 0x2020_2020_2020_2020 as UInt64) else { return false }
            offset += 8
        }
        return isEqual(at: name.count - 8, 0x2020_2020_2020_2020 as UInt64)
    }
}
