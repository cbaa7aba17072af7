/// Which part of a representation answers a request, and with which status.
enum Selection: Equatable, Sendable {
    case whole
    case part(Range<Int>)
    case parts([Range<Int>])
    case notModified
    case preconditionFailed
    case rangeNotSatisfiable

    /// Evaluates preconditions first and then ranges, as RFC 9110 section 13.2.2 has it. Ranges count for GET only
    /// (section 14.2).
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
