/// A parsed request head: a view of the bytes it was parsed from, valid as long as they are.
///
/// One value is reused for all requests of a loop thread, so that parsing allocates nothing.
struct RequestHead {
    /// The ranges of a header field in the head. Values have no blanks at their ends.
    struct Field: Sendable {
        var name: Range<UInt32>
        var value: Range<UInt32>
        var known: KnownField
    }

    /// The bytes of the head; ranges refer to them.
    private(set) var bytes = UnsafeRawBufferPointer(start: nil, count: 0)
    /// Bytes of the whole head, including the empty line at its end and empty lines before its start.
    var length = 0
    var method = HTTPMethod.get
    /// The range of the method.
    var methodRange = 0..<0
    /// The range of the request target; of an absolute-form, the part behind the authority (RFC 9112 section 3.2.2).
    var target = 0..<0
    /// The range of the authority: of an absolute-form, else of the `Host` field. Empty where HTTP/1.0 sent neither.
    var authority = 0..<0
    /// Whether the target was an absolute-form without a path, which stands for `/`, or for `*` with OPTIONS.
    var hasEmptyPath = false
    /// 0 for HTTP/1.0, else 1.
    var minorVersion: UInt8 = 1
    var framing = BodyFraming.none
    /// Whether the client allows another request on the connection (RFC 9112 section 9.3).
    var keepsAlive = true
    var expectsContinue = false
    private(set) var fields: [Field] = []
    /// One bit per known field that occurs.
    private var present: UInt32 = 0

    /// Prepares the value for the head at the start of `bytes`, and keeps its storage.
    mutating func reset(_ bytes: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)) {
        self.bytes = bytes
        length = 0
        method = .get
        methodRange = 0..<0
        target = 0..<0
        authority = 0..<0
        hasEmptyPath = false
        minorVersion = 1
        framing = .none
        keepsAlive = true
        expectsContinue = false
        fields.removeAll(keepingCapacity: true)
        present = 0
    }

    mutating func append(_ field: Field) {
        fields.append(field)
        present |= 1 << UInt32(field.known.rawValue)
    }

    /// Whether a field of that kind occurs.
    func has(_ known: KnownField) -> Bool { present & (1 << UInt32(known.rawValue)) != 0 }

    /// Whether a field occurs that makes the response depend on more than the target.
    var isConditionalOrPartial: Bool {
        let mask: UInt32 =
            1 << UInt32(KnownField.range.rawValue) | 1 << UInt32(KnownField.ifMatch.rawValue)
            | 1 << UInt32(KnownField.ifNoneMatch.rawValue) | 1 << UInt32(KnownField.ifModifiedSince.rawValue)
            | 1 << UInt32(KnownField.ifUnmodifiedSince.rawValue)
        return present & mask != 0
    }

    /// The value of the first field of that kind.
    func first(_ known: KnownField) -> UnsafeRawBufferPointer? {
        guard has(known) else { return nil }
        for field in fields where field.known == known { return bytes.slice(field.value) }
        return nil
    }

    /// The value of the first field of that name.
    func first(named name: HTTPFieldName) -> UnsafeRawBufferPointer? {
        let wanted = name.bytes
        for field in fields where field.name.count == wanted.count {
            if bytes.slice(field.name).equalsIgnoringCase(wanted) { return bytes.slice(field.value) }
        }
        return nil
    }

    /// Calls `body` with the value of every field of that kind, in order.
    func forEach(_ known: KnownField, _ body: (UnsafeRawBufferPointer) -> Void) {
        guard has(known) else { return }
        for field in fields where field.known == known { body(bytes.slice(field.value)) }
    }
}

extension RequestHead {
    /// The method as sent; empty where the request line could not be parsed.
    var methodBytes: UnsafeRawBufferPointer { bytes.slice(methodRange) }

    /// The target in origin-form or asterisk-form; empty where the request line could not be parsed.
    var targetBytes: UnsafeRawBufferPointer {
        guard hasEmptyPath else { return bytes.slice(target) }
        return method == .options ? ("*" as StaticString).bytes : ("/" as StaticString).bytes
    }

    var authorityBytes: UnsafeRawBufferPointer { bytes.slice(authority) }
}

extension UnsafeRawBufferPointer {
    /// The bytes in a range of a field.
    func slice(_ range: Range<UInt32>) -> UnsafeRawBufferPointer {
        slice(Int(range.lowerBound)..<Int(range.upperBound))
    }
}
