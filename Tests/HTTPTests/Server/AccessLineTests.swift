import Foundation
import SystemIO
import TestSupport
import Testing

@testable import HTTP

@Suite("Any request makes one line of the access log") struct AccessLineTests {
    private struct Texts {
        var all: [[UInt8]]

        init(_ random: inout SeededNumbers) {
            all = (0..<6).map { _ in
                let isPlain = random.next() % 3 == 0
                return (0..<(random.next() % 40)).map { _ in
                    isPlain ? UInt8(0x61 + random.next() % 26) : UInt8(truncatingIfNeeded: random.next())
                }
            }
        }

        func append(_ entry: AccessEntry, to batch: inout HTTPAccessBatch) {
            all[0].withUnsafeBytes { method in
                all[1].withUnsafeBytes { target in
                    all[2].withUnsafeBytes { id in
                        all[3].withUnsafeBytes { cacheStatus in
                            all[4].withUnsafeBytes { referrer in
                                all[5].withUnsafeBytes { userAgent in
                                    var texts = AccessTexts(
                                        method: method, target: target, requestID: id, cacheStatus: cacheStatus)
                                    texts.referrer = referrer
                                    texts.userAgent = userAgent
                                    batch.append(entry, texts)
                                }
                            }
                        }
                    }
                }
            }
        }

        /// The text as the log contains it, without the escaping that JSON undoes.
        func logged(_ index: Int) -> String {
            String(decoding: all[index].map { $0 >= 0x20 && $0 < 0x7f ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
        }
    }

    private func entry(_ random: inout SeededNumbers) -> AccessEntry {
        func number(_ bound: UInt64) -> Int { Int(random.next() % bound) }
        var entry = AccessEntry()
        entry.client = [nil, IPAddress("1.2.3.4"), IPAddress("2001:db8::1")][number(3)]
        entry.time = number(4_000_000_000_000)
        entry.duration = number(100_000_000)
        entry.status = 100 + number(500)
        entry.bytes = number(1 << 40)
        entry.isComplete = number(2) == 0
        return entry
    }

    @Test(arguments: LogFormat.allCases) func lineIsVisibleASCII(format: LogFormat) {
        var random = SeededNumbers(seed: 4)
        for _ in 0..<100 {
            var batch = HTTPAccessBatch()
            Texts(&random).append(entry(&random), to: &batch)
            var encoder = AccessLineEncoder(format: format, includesClientFields: true)
            batch.forEach { encoder.append($0) }
            #expect(encoder.bytes.last == 10)
            #expect(encoder.bytes.dropLast().allSatisfy { $0 >= 0x20 && $0 < 0x7f })
        }
    }

    @Test func jsonLineContainsTheValuesOfTheRequest() throws {
        var random = SeededNumbers(seed: 6)
        for _ in 0..<100 {
            let (texts, entry) = (Texts(&random), entry(&random))
            var batch = HTTPAccessBatch()
            texts.append(entry, to: &batch)
            var encoder = AccessLineEncoder(format: .json, includesClientFields: true)
            batch.forEach { encoder.append($0) }
            let line = try #require(try JSONSerialization.jsonObject(with: Data(encoder.bytes)) as? [String: Any])
            for (index, name) in ["method", "target", "request_id", "cache_status", "referer", "user_agent"].enumerated() {
                #expect(line[name] as? String == texts.logged(index))
            }
            #expect(line["client"] as? String == entry.client?.description ?? "")
            #expect(line["time"] as? String == CivilTime.text(milliseconds: entry.time))
            #expect(line["status"] as? Int == entry.status)
            #expect(line["bytes"] as? Int == entry.bytes)
            #expect((line["duration_ms"] as? Double).map { Int(($0 * 1000).rounded()) } == entry.duration)
            #expect((line["cut"] as? Bool ?? false) == !entry.isComplete)
        }
    }

    @Test func timesWithinOneSecondDifferInTheirMilliseconds() throws {
        let times = [999, 1000, 1001, 1999, 1090, 2000, 0, 784_111_777_042]
        var batch = HTTPAccessBatch()
        for time in times {
            let none = UnsafeRawBufferPointer(start: nil, count: 0)
            let texts = AccessTexts(method: none, target: none, requestID: none, cacheStatus: none)
            batch.append(AccessEntry(time: time), texts)
        }
        var encoder = AccessLineEncoder(format: .text)
        batch.forEach { encoder.append($0) }
        let lines = String(decoding: encoder.bytes, as: UTF8.self).split(separator: "\n")
        #expect(lines.map { $0.prefix { $0 != " " } } == times.map { CivilTime.text(milliseconds: $0)[...] })
    }

    @Test func batchReturnsItsEntriesInOrder() {
        var random = SeededNumbers(seed: 8)
        var batch = HTTPAccessBatch()
        let all = (0..<100).map { _ in (Texts(&random), entry(&random)) }
        for (texts, entry) in all { texts.append(entry, to: &batch) }
        #expect(batch.count == 100)
        var index = 0
        batch.forEach { record in
            let (texts, entry) = all[index]
            let found = [
                record.method, record.target, record.requestID, record.cacheStatus, record.referrer, record.userAgent,
            ]
            for (found, text) in zip(found, texts.all) { #expect(found.elementsEqual(text)) }
            #expect(record.client == entry.client && record.time == entry.time && record.duration == entry.duration)
            #expect(record.status == entry.status && record.bytes == entry.bytes && record.isComplete == entry.isComplete)
            index += 1
        }
        #expect(index == 100)
    }
}
