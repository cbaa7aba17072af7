import Foundation
import SystemIO
import TestSupport
import Testing

@testable import Store

private let callCount = ProcessInfo.processInfo.environment["GIFREEL_MEASURE"].flatMap { Int($0) } ?? 0

/// Figures, not checks: `GIFREEL_MEASURE=200 swift test -c release -Xswiftc -enable-testing --filter
/// S3Measurements`, the number being that of calls.
@Suite("Times of calls to a real server", .serialized, .s3Server, .enabled(if: callCount > 0)) struct S3Measurements {
    private func report(_ what: String, _ times: [Duration]) {
        let sorted = times.sorted()
        func text(_ share: Double) -> String {
            (sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))] / .milliseconds(1))
                .formatted(.number.precision(.fractionLength(2)))
        }
        print("\(what): p50 \(text(0.5)) ms, p99 \(text(0.99)) ms, \(sorted.count) calls")
    }

    private func time(_ body: () async throws -> Void) async rethrows -> Duration {
        let start = ContinuousClock.now
        try await body()
        return ContinuousClock.now - start
    }

    @Test(arguments: [0, 50], [20_000, 1_000_000])
    func lookupsAndUploads(_ delay: Int, _ length: Int) async throws {
        let fixture = try StoreFixture(faults: .delay(.milliseconds(delay)))
        defer { fixture.stop() }
        let store = try fixture.store()
        let renditions = try (0..<callCount).map { try TestRendition(UInt64($0), count: length) }
        var (queued, hits, misses): ([Duration], [Duration], [Duration]) = ([], [], [])
        for rendition in renditions {
            queued.append(try await time { try await store.store(rendition) })
        }
        #expect(await store.drain(within: .seconds(600)))
        let puts = try #require(store.statistics.calls[.put])
        for rendition in renditions {
            hits.append(try await time { _ = try await store.fetch(rendition.name, maxLength: length) })
            let other = try TestRendition(UInt64(rendition.bytes[0]) + 1_000_000, count: 1)
            misses.append(try await time { _ = try await store.fetch(other.name, maxLength: length) })
        }
        print("── \(length) bytes, \(delay) ms of delay")
        report("hand a rendition to the queue", queued)
        print("upload, two at once: mean \(puts.time / puts.count)")
        report("lookup, found and verified", hits)
        report("lookup, not found", misses)
    }
}
