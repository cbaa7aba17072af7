/// The part of a representation that a request selects, which determines the status.
enum Selection: Equatable, Sendable {
    case whole
    case part(Range<Int>)
    case parts([Range<Int>])
    case notModified
    case preconditionFailed
    case rangeNotSatisfiable

    /// Evaluates the preconditions and then the ranges (RFC 9110 section 13.2.2). Ranges apply to GET only (section 14.2).
    ///
    /// - Parameters:
    ///   - length: Bytes of the representation.
    ///   - now: Unix seconds.
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

/// The preconditions of a GET or HEAD. Pure; `now` is in Unix seconds.
extension RequestHead {
    enum PreconditionOutcome: Equatable {
        case proceed, notModified, failed
    }

    /// Evaluates the preconditions in the order of RFC 9110 section 13.2.2.
    func evaluatePreconditions(_ validators: Validators, now: Int) -> PreconditionOutcome {
        if has(.ifMatch) {
            if !anyListNamesTag(.ifMatch, of: validators, weakly: false) { return .failed }
        } else if let date = date(.ifUnmodifiedSince, validators, now), validators.lastModified > date {
            return .failed
        }
        if has(.ifNoneMatch) {
            if anyListNamesTag(.ifNoneMatch, of: validators, weakly: true) { return .notModified }
        } else if let date = date(.ifModifiedSince, validators, now), validators.lastModified <= date {
            return .notModified
        }
        return .proceed
    }

    /// Whether `Range` applies: `If-Range` is missing or names the current representation (RFC 9110 section 13.1.5). A date
    /// names it only where it is equal and old enough to be a strong validator (section 8.8.2.2).
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
