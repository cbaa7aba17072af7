import TestSupport
import Testing

@testable import HTTP

@Suite("Range fields select ranges") struct ByteRangesTests {
    private func ranges(_ value: String, length: Int = 1000) -> ByteRanges {
        Array(value.utf8).withUnsafeBytes { ByteRanges($0, length: length) }
    }

    @Test(arguments: [
        ("bytes=0-0", 0..<1), ("bytes=0-99", 0..<100), ("bytes=100-", 100..<1000), ("bytes=-100", 900..<1000),
        ("bytes=-5000", 0..<1000), ("bytes=999-", 999..<1000), ("bytes=10-99999", 10..<1000), ("Bytes=0-0", 0..<1),
        ("bytes= 0-0 ", 0..<1), ("bytes=0-18446744073709551615", 0..<1000), ("bytes=-9223372036854775809", 0..<1000),
        ("bytes=0-1,1-5", 0..<6), ("bytes=0-1,2-5", 0..<6), ("bytes=2-5,0-1", 0..<6), ("bytes=5-9,0-", 0..<1000),
        ("bytes=0-1,2000-", 0..<2),
    ])
    func rangeIsSelected(value: String, range: Range<Int>) {
        #expect(ranges(value) == .single(range))
    }

    @Test(arguments: ["bytes=1000-", "bytes=-0", "bytes=18446744073709551616-", "bytes=1000-,2000-2001"])
    func rangePastTheEndIsUnsatisfiable(value: String) {
        #expect(ranges(value) == .unsatisfiable)
    }

    @Test(arguments: [
        "items=0-5", "bytes=5-2", "bytes=abc", "bytes=", "bytes", "bytes=-", "bytes=1",
        "bytes=0-1,x", "bytes=,", "bytes=+1-2",
    ])
    func malformedRangeIsIgnored(value: String) {
        #expect(ranges(value) == .ignored)
    }

    @Test func rangesWithGapsKeepTheirOrder() {
        #expect(ranges("bytes=10-12,0-1") == .several([10..<13, 0..<2]))
        #expect(ranges("bytes=10-12,0-1,13-14") == .several([10..<15, 0..<2]))
    }

    @Test func rangesNeverExceedTheWhole() {
        let sixteen = "bytes=" + (0..<16).map { "\($0)-" }.joined(separator: ",")
        #expect(ranges(sixteen) == .single(0..<1000))
        let many = "bytes=" + (0..<17).map { "\($0 * 2)-\($0 * 2)" }.joined(separator: ",")
        #expect(ranges(many) == .ignored)
    }

    @Test func emptyRepresentationHasNoRange() {
        #expect(ranges("bytes=0-", length: 0) == .unsatisfiable)
        #expect(ranges("bytes=-1", length: 0) == .unsatisfiable)
    }

    /// The bytes that a set of ranges selects, computed byte by byte; nil if no range overlaps the representation.
    private func model(_ set: [(first: Int?, last: Int?)], length: Int) -> Set<Int>? {
        var selected: Set<Int> = []
        for (first, last) in set {
            for byte in 0..<length {
                let isSelected =
                    switch (first, last) {
                    case (let first?, let last?): byte >= first && byte <= last
                    case (let first?, nil): byte >= first
                    case (nil, let suffix?): byte >= length - suffix
                    case (nil, nil): false
                    }
                if isSelected { selected.insert(byte) }
            }
        }
        return selected.isEmpty ? nil : selected
    }

    @Test(arguments: 1...8) func selectionIsThatOfAModelThatLooksAtEveryByte(seed: UInt64) {
        var random = SeededNumbers(seed: seed)
        func number(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }
        for _ in 0..<60 {
            let length = number(40)
            let set: [(first: Int?, last: Int?)] = (0...number(6)).map { _ in
                let first = number(80)
                return [(first, first + number(20)), (first, nil), (nil, first)][number(3)]
            }
            let value = set.map { range in
                "\(range.first.map(String.init) ?? "")-\(range.last.map(String.init) ?? "")"
            }.joined(separator: [",", ", ", " ,,"][number(3)])
            let found: [Range<Int>]
            switch ranges("bytes=\(value)", length: length) {
            case .ignored:
                Issue.record("ignored: \(value)")
                continue
            case .unsatisfiable: found = []
            case .single(let range): found = [range]
            case .several(let ranges):
                found = ranges
                #expect(ranges.count > 1)
            }
            #expect(Set(found.flatMap { Array($0) }) == model(set, length: length) ?? [], "\(value) of \(length)")
            // Ranges neither overlap nor touch.
            for (index, range) in found.enumerated() {
                for other in found[(index + 1)...] {
                    #expect(range.upperBound < other.lowerBound || other.upperBound < range.lowerBound, "\(value)")
                }
            }
        }
    }
}
