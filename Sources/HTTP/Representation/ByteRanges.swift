/// The ranges that a `Range` field selects from a representation (RFC 9110 section 14).
enum ByteRanges: Equatable, Sendable {
    /// The field has another unit, is malformed, or has too many ranges: the whole representation is sent.
    case ignored
    /// No range overlaps the representation: 416.
    case unsatisfiable
    case single(Range<Int>)
    /// At least two ranges with gaps between them, in the requested order.
    case several([Range<Int>])

    /// The maximum number of ranges; a field with more is ignored. Players request one, PDF readers a few.
    static let limit = 16

    /// Evaluates the field's value for a representation of `length` bytes.
    ///
    /// Overlapping and adjacent ranges are merged, so that no response is longer than the representation.
    init(_ value: UnsafeRawBufferPointer, length: Int) {
        let unit: StaticString = "bytes="
        guard value.count > 6, value.slice(0..<6).equalsIgnoringCase(unit) else {
            self = .ignored
            return
        }
        let set = value.slice(6..<value.count)
        if let only = Self.soleRange(set, length: length) {
            self = only
            return
        }
        var ranges: [Range<Int>] = []
        var count = 0
        var malformed = false
        for element in FieldList(set) {
            count += 1
            switch Self.parse(element, length: length) {
            case .ignored: malformed = true
            case .single(let range): Self.merge(range, into: &ranges)
            default: break
            }
            if malformed || count > Self.limit { break }
        }
        if malformed || count == 0 || count > Self.limit {
            self = .ignored
        } else if let first = ranges.first {
            self = ranges.count == 1 ? .single(first) : .several(ranges)
        } else {
            self = .unsatisfiable
        }
    }

    /// Handles the common case of a single range without an array.
    private static func soleRange(_ set: UnsafeRawBufferPointer, length: Int) -> ByteRanges? {
        set.contains(UInt8(ascii: ",")) ? nil : parse(set.trimmed, length: length)
    }

    /// Parses `first-last`, `first-` or `-suffix`.
    private static func parse(_ spec: UnsafeRawBufferPointer, length: Int) -> ByteRanges {
        guard let dash = spec.firstIndex(of: UInt8(ascii: "-")) else { return .ignored }
        let after = spec.slice(dash + 1..<spec.count)
        if dash == 0 {
            guard let suffix = number(after) else { return .ignored }
            return suffix == 0 || length == 0 ? .unsatisfiable : .single(max(0, length - suffix)..<length)
        }
        guard let first = number(spec.slice(0..<dash)) else { return .ignored }
        var last = Int.max - 1
        if !after.isEmpty {
            guard let given = number(after), given >= first else { return .ignored }
            last = given
        }
        return first >= length ? .unsatisfiable : .single(first..<min(last, length - 1) + 1)
    }

    /// Parses `digits`. A number beyond `Int` lies past the end of any representation, so it is clamped.
    private static func number(_ digits: UnsafeRawBufferPointer) -> Int? {
        guard !digits.isEmpty, digits.allSatisfy({ $0.digit != nil }) else { return nil }
        return min(digits.decimal ?? Int.max - 1, Int.max - 1)
    }

    private static func merge(_ range: Range<Int>, into ranges: inout [Range<Int>]) {
        var merged = range
        var position = ranges.count
        // Iterates backwards, so that a removal does not move the ranges still to be compared.
        for index in ranges.indices.reversed()
        where ranges[index].lowerBound <= merged.upperBound && merged.lowerBound <= ranges[index].upperBound {
            let other = ranges.remove(at: index)
            merged = min(merged.lowerBound, other.lowerBound)..<max(merged.upperBound, other.upperBound)
            position = index
        }
        ranges.insert(merged, at: position)
    }
}
