/// Evaluates the preconditions of a GET or HEAD in the order of RFC 9110 section 13.2.2. Pure: all it needs is passed in.
struct Preconditions {
    enum Outcome: Equatable {
        case proceed, notModified, failed
    }

    let validators: Validators
    let head: RequestHead
    /// Unix seconds.
    let now: Int

    func evaluate() -> Outcome {
        if head.has(.ifMatch) {
            if !anyListNamesTag(.ifMatch, weakly: false) { return .failed }
        } else if let date = date(.ifUnmodifiedSince), validators.lastModified > date {
            return .failed
        }
        if head.has(.ifNoneMatch) {
            if anyListNamesTag(.ifNoneMatch, weakly: true) { return .notModified }
        } else if let date = date(.ifModifiedSince), validators.lastModified <= date {
            return .notModified
        }
        return .proceed
    }

    /// Whether `Range` counts: there is no `If-Range`, or it names the representation as it is (RFC 9110 section 13.1.5).
    /// A date does so only where it is the exact one and old enough to be a strong validator (section 8.8.2.2).
    func allowsRange() -> Bool {
        guard let value = head.first(.ifRange) else { return true }
        if value.first == UInt8(ascii: "\"") || value.starts(with: ("W/" as StaticString).bytes) {
            return validators.entityTag.withUnsafeBytes { value.equals($0) }
        }
        guard let date = validators.date(value, now: now) else { return false }
        return date == validators.lastModified && date < now
    }

    private func anyListNamesTag(_ field: KnownField, weakly: Bool) -> Bool {
        var found = false
        validators.entityTag.withUnsafeBytes { tag in
            head.forEach(field) { value in
                if !found { found = EntityTag.list(value, names: tag, weakly: weakly) }
            }
        }
        return found
    }

    private func date(_ field: KnownField) -> Int? {
        head.first(field).flatMap { validators.date($0, now: now) }
    }
}
