#if canImport(HTTP)
    @testable import HTTP
#endif

/// What must hold of the parsers whatever bytes they are given. The fuzzer looks for bytes for which it does not; the
/// tests replay its corpus.
///
/// It is compiled into the fuzzer together with the parsers themselves, and so imports nothing else.
enum ParserInvariants {
    /// The first invariant that does not hold, in words; nil if all do.
    static func violation(_ bytes: UnsafeRawBufferPointer) -> String? {
        if let violation = words(bytes) { return violation }
        var head = RequestHead()
        let parser = RequestHeadParser()
        do throws(HTTPProtocolError) {
            guard try parser.parse(bytes, into: &head) else { return nil }
        } catch {
            return nil
        }
        if let violation = shape(head, in: bytes) ?? prefixes(head, bytes) { return violation }
        if let violation = selection(head) { return violation }
        return body(head.framing, UnsafeRawBufferPointer(rebasing: bytes[head.length...]))
    }

    /// Eight bytes looked at together tell the same as one after the other.
    private static func words(_ bytes: UnsafeRawBufferPointer) -> String? {
        let part = bytes.slice(0..<min(bytes.count, 80))
        for start in 0..<min(part.count, 20) {
            let found = ByteWord.firstMark(in: part, from: start) { $0.equal(to: 0x25) | $0.equal(to: 0x0D) }
            let first = part[start...].firstIndex { $0 == 0x25 || $0 == 0x0D } ?? part.count
            guard found == first || found < first && found >= start && part.count - found < 8 else {
                return "first mark from \(start): \(found) for \(first)"
            }
        }
        for offset in stride(from: 0, through: min(bytes.count, 64) - 8, by: 1) {
            let word = ByteWord(bytes, at: offset)
            let eight = bytes.slice(offset..<offset + 8)
            func agree(_ marks: UInt64, _ isMeant: (UInt8) -> Bool) -> Bool {
                marks.trailingZeroBitCount / 8 == eight.firstIndex(where: isMeant) ?? 8
            }
            func isUsual(_ byte: UInt8) -> Bool { byte.lowercased >= 0x61 && byte.lowercased <= 0x7A || byte == 0x2D }
            guard agree(word.below(0x21), { $0 < 0x21 }), agree(word.below(0x20), { $0 < 0x20 }),
                agree(word.equal(to: 0x25), { $0 == 0x25 }), agree(word.equal(to: 0x7F), { $0 == 0x7F }),
                agree(word.outsideASCII(from: 0x20), { $0 < 0x20 || $0 >= 0x7F }),
                agree(word.outsideASCII(from: 0x21), { !$0.isVisible }), agree(word.neitherLetterNorHyphen, { !isUsual($0) })
            else { return "marks of eight bytes at \(offset)" }
            let lowercased = withUnsafeBytes(of: word.lowercased.littleEndian) { $0.elementsEqual(eight.map(\.lowercased)) }
            guard lowercased else { return "eight bytes in lower case at \(offset)" }
        }
        return nil
    }

    /// The parts of a complete head lie within it and contain only allowed bytes.
    private static func shape(_ head: RequestHead, in bytes: UnsafeRawBufferPointer) -> String? {
        guard head.length <= bytes.count, head.length >= 16 else { return "length \(head.length)" }
        let target = head.targetBytes
        guard target.first == UInt8(ascii: "/") || target.elementsEqual([UInt8(ascii: "*")]) else { return "target" }
        guard target.allSatisfy(\.isVisible) else { return "target holds what is not visible" }
        guard head.fields.count <= parserLimits.fields else { return "too many fields" }
        for field in head.fields {
            guard head.length >= Int(field.value.upperBound), field.name.upperBound < field.value.lowerBound else {
                return "places of a field"
            }
            guard bytes.slice(field.name).allSatisfy(\.isToken) else { return "name of a field" }
            let value = bytes.slice(field.value)
            if value.contains(where: { $0 == 0 || $0 == 10 || $0 == 13 }) { return "value of a field" }
            if value.first?.isBlank ?? false || value.last?.isBlank ?? false { return "blanks around a value" }
        }
        return nil
    }

    private static let parserLimits = HeadLimits()

    /// Every prefix of a valid head is incomplete but not invalid, and what follows the head does not change its end.
    private static func prefixes(_ head: RequestHead, _ bytes: UnsafeRawBufferPointer) -> String? {
        let parser = RequestHeadParser()
        var other = RequestHead()
        for count in [head.length / 3, head.length - 3, head.length - 1, head.length] {
            do throws(HTTPProtocolError) {
                let isComplete = try parser.parse(bytes.slice(0..<count), into: &other)
                if isComplete != (count == head.length) { return "\(count) of \(head.length) bytes: \(isComplete)" }
            } catch {
                return "\(count) of \(head.length) bytes: \(error)"
            }
        }
        return other.length == head.length && other.framing == head.framing ? nil : "the same head differs"
    }

    /// Selected ranges lie within the representation and are never longer than it.
    private static func selection(_ head: RequestHead) -> String? {
        let validators = Validators(entityTag: "\"a\"", lastModified: 784_111_777)
        for length in [0, 1, 1000] {
            let ranges: [Range<Int>] =
                switch Selection(head: head, validators: validators, length: length, now: 1_700_000_000) {
                case .part(let range): [range]
                case .parts(let ranges): ranges
                default: []
                }
            guard ranges.allSatisfy({ !$0.isEmpty && $0.lowerBound >= 0 && $0.upperBound <= length }) else {
                return "ranges \(ranges) of \(length)"
            }
            guard ranges.reduce(0, { $0 + $1.count }) <= length else { return "more than the whole" }
        }
        return nil
    }

    /// A body decodes alike in one piece and in many.
    private static func body(_ framing: BodyFraming, _ bytes: UnsafeRawBufferPointer) -> String? {
        let whole = decode(framing, bytes, pieces: max(1, bytes.count))
        for size in [1, 7] {
            let pieces = decode(framing, bytes, pieces: size)
            if pieces != whole { return "a body in pieces of \(size): \(pieces), not \(whole)" }
        }
        return nil
    }

    private struct Decoded: Equatable {
        var data: [UInt8] = []
        var end: Int?
        var isRefused = false
    }

    private static func decode(_ framing: BodyFraming, _ bytes: UnsafeRawBufferPointer, pieces size: Int) -> Decoded {
        var decoder = BodyDecoder(framing)
        var decoded = Decoded()
        var start = 0
        repeat {
            let piece = bytes.slice(start..<min(start + size, bytes.count))
            var position = 0
            do throws(HTTPProtocolError) {
                pieces: while true {
                    switch try decoder.next(piece, at: &position) {
                    case .data(let range): decoded.data += Array(piece.slice(range))
                    case .needsMore: break pieces
                    case .end(let position):
                        decoded.end = start + position
                        return decoded
                    }
                }
            } catch {
                decoded.isRefused = true
                return decoded
            }
            start += size
        } while start < bytes.count
        return decoded
    }
}
