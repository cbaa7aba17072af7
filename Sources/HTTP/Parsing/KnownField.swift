/// The request fields that the engine itself reads. They are recognized once, while the head is parsed.
enum KnownField: UInt8 {
    case unknown
    case host, range, expect, connection, forwarded
    case ifMatch, ifNoneMatch, ifModifiedSince, ifUnmodifiedSince, ifRange
    case contentLength, transferEncoding
    case requestID, forwardedFor, forwardedProto

    /// The field with that name. `name` must contain token characters only.
    init(_ name: UnsafeRawBufferPointer) {
        switch name.count {
        case 4: self = name.isFieldName("host") ? .host : .unknown
        case 5: self = name.isFieldName("range") ? .range : .unknown
        case 6: self = name.isFieldName("expect") ? .expect : .unknown
        case 8: self = name.isFieldName("if-range") ? .ifRange : name.isFieldName("if-match") ? .ifMatch : .unknown
        case 9: self = name.isFieldName("forwarded") ? .forwarded : .unknown
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
    /// Whether these bytes, which are as many token characters as `lowercase` has, equal that name in any case.
    ///
    /// The two cases of a letter differ in one bit, which a hyphen has too; the byte that differs from a hyphen in this bit is not
    /// a token character (RFC 9110 section 5.6.2). Setting the bit therefore allows comparing a word at a time.
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
