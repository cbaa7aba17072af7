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

    /// Whether `Range` counts: there is no `If-Range`, or it names the representation as it is (RFC 9110 section 13.1.5).
    /// A date does so only where it is the exact one and old enough to be a strong validator (section 8.8.2.2).
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
