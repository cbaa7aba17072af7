/// The part of a representation that a request selects, which determines the status.
enum Selection: Equatable, Sendable {
    case whole
    case part(Range<Int>)
    case parts([Range<Int>])
    case notModified
    case preconditionFailed
    case rangeNotSatisfiable

    /// Evaluates the preconditions and then the ranges (RFC 9110 section 13.2.2). Ranges apply only to GET (section 14.2).
    ///
    /// - Parameters:
    ///   - length: The length of the representation in bytes.
    ///   - now: The current Unix seconds.
    init(head: RequestHead, validators: Validators, length: Int, now: Int) {
        switch head.evaluatePreconditions(validators, now: now) {
        case .failed: self = .preconditionFailed
        case .notModified: self = .notModified
        case .proceed:
            guard head.method == .get, let range = head.first(.range), head.allowsRange(validators, now: now) else {
                self = .whole
                return
            }
            switch ByteRanges(range, length: length) {
            case .ignored: self = .whole
            case .unsatisfiable: self = .rangeNotSatisfiable
            case .single(let range): self = .part(range)
            case .several(let ranges): self = .parts(ranges)
            }
        }
    }
}

/// Preconditions of GET and HEAD. Pure functions; `now` is in Unix seconds.
extension RequestHead {
    enum PreconditionOutcome: Equatable {
        case proceed, notModified, failed
    }

    /// Evaluates the preconditions in the order of RFC 9110 section 13.2.2.
    func evaluatePreconditions(_ validators: Validators, now: Int) -> PreconditionOutcome {
        if has(.ifMatch) {
            if !anyListNamesTag(.ifMatch, of: validators, weakly: false) { return .failed }
        } else if let date = date(.ifUnmodifiedSince, validators, now), let modified = validators.lastModified, modified > date
        {
            return .failed
        }
        if has(.ifNoneMatch) {
            if anyListNamesTag(.ifNoneMatch, of: validators, weakly: true) { return .notModified }
        } else if let date = date(.ifModifiedSince, validators, now), date == validators.lastModified {
            // A later date may belong to another representation: when a resource reverts to earlier contents, so does its date.
            return .notModified
        }
        return .proceed
    }

    /// Whether `Range` applies: `If-Range` is absent or matches the current representation (RFC 9110 section 13.1.5). A date
    /// matches only if it is equal and old enough to be a strong validator (section 8.8.2.2).
    func allowsRange(_ validators: Validators, now: Int) -> Bool {
        guard let value = first(.ifRange) else { return true }
        if value.first == UInt8(ascii: "\"") || value.starts(with: ("W/" as StaticString).bytes) {
            return validators.entityTag.withUnsafeBytes { value.equals($0) }
        }
        guard let date = validators.date(value, now: now) else { return false }
        return date == validators.lastModified && date < now
    }

    private func anyListNamesTag(_ field: KnownField, of validators: Validators, weakly: Bool) -> Bool {
        var found = false
        validators.entityTag.withUnsafeBytes { tag in
            forEach(field) { value in
                if !found { found = EntityTag.list(value, names: tag, weakly: weakly) }
            }
        }
        return found
    }

    private func date(_ field: KnownField, _ validators: Validators, _ now: Int) -> Int? {
        first(field).flatMap { validators.date($0, now: now) }
    }
}

/// The validators of a representation (RFC 9110 section 8.8). A class, so that passing it costs one retain instead of one per
/// text.
final class Validators: Sendable {
    /// The strong entity tag with its quotes.
    let entityTag: [UInt8]
    /// The last modification in Unix seconds; nil if dates do not identify the representation.
    let lastModified: Int?
    /// ``lastModified`` as text in responses. Most clients send it back unchanged.
    private let lastModifiedText: [UInt8]

    init(entityTag: String, lastModified: Int?) {
        self.entityTag = Array(entityTag.utf8)
        self.lastModified = lastModified
        lastModifiedText = lastModified.map { Array(HTTPDate.format($0).utf8) } ?? []
    }

    func date(_ value: UnsafeRawBufferPointer, now: Int) -> Int? {
        if let lastModified, lastModifiedText.withUnsafeBytes({ value.equals($0) }) { return lastModified }
        guard value.count <= HTTPDate.maxLength else { return nil }
        return HTTPDate.parse(String(decoding: value, as: UTF8.self), now: now)
    }
}

/// Entity tag comparisons (RFC 9110 section 8.8.3.2). Tags include their quotes.
enum EntityTag {
    /// Whether `text` is a strong tag: visible ASCII or bytes beyond ASCII in quotes, without inner quotes.
    static func isStrong(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return bytes.count >= 2 && bytes.first == UInt8(ascii: "\"") && bytes.last == UInt8(ascii: "\"")
            && bytes.dropFirst().dropLast().allSatisfy { $0 == 0x21 || $0 > 0x22 && $0 != 0x7F }
    }

    /// Whether `list` (the value of `If-None-Match` or `If-Match`) contains the strong tag `tag`.
    ///
    /// - Parameter weakly: Whether to compare weakly, so that `W/"a"` matches `"a"`.
    static func list(_ list: UnsafeRawBufferPointer, names tag: UnsafeRawBufferPointer, weakly: Bool) -> Bool {
        // The common case: the tag of an earlier response.
        if list.equals(tag) || list.equals("*") { return true }
        for element in FieldList(list, hasEscapes: false) {
            var candidate = element
            if weakly, element.count > 2, element[0] == UInt8(ascii: "W"), element[1] == UInt8(ascii: "/") {
                candidate = element.slice(2..<element.count)
            }
            if candidate.equals(tag) { return true }
        }
        return false
    }
}
