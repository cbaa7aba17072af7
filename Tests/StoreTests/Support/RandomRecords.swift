import TestSupport

@testable import Store

/// Random values of everything that the journal and the index record, decided by a seed.
struct RandomRecords {
    private var numbers: SeededNumbers
    private let special: [Unicode.Scalar]

    /// - Parameter hasNul: Whether texts may contain U+0000, which SQLite's text ends at. No URL and no field of HTTP has it.
    init(seed: UInt64, hasNul: Bool = true) {
        numbers = SeededNumbers(seed: seed)
        special = ["\t", "\n", "\r", "\\", "\u{1}", "\u{7f}", "=", "ä", "…", "😀", "%", "/"] + (hasNul ? ["\u{0}"] : [])
    }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &numbers) < percent }

    mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &numbers) }

    mutating func element<Element>(of elements: [Element]) -> Element {
        elements[number(0...elements.count - 1)]
    }

    /// A number in range of ``ObjectRecord/maxNumber``: often one of the limits, or near zero.
    mutating func bounded(from lowest: Int64 = -ObjectRecord.maxNumber) -> Int64 {
        switch number(0...3) {
        case 0: lowest
        case 1: ObjectRecord.maxNumber
        case 2: max(lowest, Int64(number(-2...2)))
        default: Int64.random(in: lowest...ObjectRecord.maxNumber, using: &numbers)
        }
    }

    mutating func bytes(upTo count: Int) -> [UInt8] {
        (0..<number(0...count)).map { _ in UInt8.random(in: .min ... .max, using: &numbers) }
    }

    /// A text with the characters that a line of the journal has to escape, and some of more than one byte.
    mutating func text(upTo count: Int = 20) -> String {
        var text = String.UnicodeScalarView()
        for _ in 0..<number(0...count) {
            text.append(chance(40) ? element(of: special) : Unicode.Scalar(UInt8(number(0x20...0x7e))))
        }
        return String(text)
    }

    mutating func digest<Name: DigestName>() -> Name {
        Name(digest: SourceDigest(of: (0..<16).map { _ in UInt8(number(0...255)) }).digest)
    }

    mutating func objectRecord(id: ObjectID? = nil) -> ObjectRecord {
        let letters = Array("abcdefghijklmnopqrstuvwxyz0123456789")
        let fileExtension = String((0..<number(1...8)).map { _ in element(of: letters) })
        return ObjectRecord(
            id: id ?? digest(), fileExtension: fileExtension, length: bounded(from: 1), content: digest(),
            created: bounded(), facts: bytes(upTo: chance(5) ? ObjectRecord.maxFactsCount : 40))
    }

    mutating func aliasRecord(key: AliasKey? = nil, url: String? = nil) -> AliasRecord {
        AliasRecord(
            key: key ?? digest(), sourceURL: url ?? text(), rendition: text(),
            validators: Validators(etag: chance(50) ? text() : nil, lastModified: chance(50) ? text() : nil),
            times: OriginTimes(fetchedAt: bounded(), freshFor: chance(50) ? bounded() : nil, mustRevalidate: chance(50)))
    }

}
