import Fetch
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Renditions
@testable import Store

@Suite("Failures are remembered for their lifetime, and not beyond a purge") final class FailureMemoryTests: Sendable {
    private let time = Atomic<UInt64>(1_000_000_000_000)
    private let purges = PurgeIndex()
    private let source: SourceURL
    private let missing = RenditionError.fetchFailed(.notFound)
    private let unusable = RenditionError.fetchFailed(.tooLarge(limit: 1, declared: nil))
    private let key = AliasKey(sourceURL: "https://a.test/1", rendition: "mp4")

    init() throws {
        source = try SourceURL("https://a.test/1")
    }

    private func makeMemory(limit: Int = 10_000) -> FailureMemory {
        let clock = TimeSource(unixSeconds: { 0 }, monotonicNanoseconds: { [self] in time.load(ordering: .relaxed) })
        return FailureMemory(purges, clock: clock, limit: limit)
    }

    private func advance(_ seconds: UInt64) {
        time.add(seconds * 1_000_000_000, ordering: .relaxed)
    }

    /// Adds a purge of this node, and applies it.
    private func purge(_ scope: PurgeScope, _ memory: FailureMemory) {
        let purge = Purge(scope, madeAt: 0, isLocal: true, token: "\(scope)", entry: "")
        purges.insert(purge, purges.epoch.number + 1, isSwept: true)
        memory.forget(scope)
    }

    private func remaining(_ error: RenditionError?) -> Int64? {
        if case .remembered(_, let remaining)? = error { remaining } else { nil }
    }

    @Test(
        arguments: [
            (NegativeLifetime.missing, 60...60), (.unusable, 600...600), (.transient, 5...7),
            (.retryAfter(seconds: 20), 20...20),
            (.retryAfter(seconds: 9_999), 300...300), (.retryAfter(seconds: -5), 1...1),
            (.shared(seconds: 9_999), 600...600), (.shared(seconds: 0), 1...1),
        ] as [(NegativeLifetime, ClosedRange<UInt64>)])
    func lifetimesAreBounded(_ lifetime: NegativeLifetime, _ seconds: ClosedRange<UInt64>) {
        for _ in 0..<50 { #expect(seconds.contains(lifetime.nanoseconds() / 1_000_000_000)) }
    }

    @Test func transientFailuresEndAtDifferentTimes() {
        let times = Set((0..<50).map { _ in NegativeLifetime.transient.nanoseconds() })
        #expect(times.count > 10)
        #expect(times.allSatisfy { (5_000_000_000...7_500_000_000).contains($0) })
    }

    /// Repeated runs are the same, and not all sources are requested again at once.
    @Test func theKeyOfATransientFailureDeterminesItsEnd() throws {
        let sources = try (0..<20).map { try SourceURL("https://a.test/\($0)") }
        let runs = (0..<2).map { _ in
            let memory = makeMemory()
            for source in sources { memory.remember(.fetchFailed(.unreachable(cause: "")), of: source, since: purges.epoch) }
            return sources.map { remaining(memory.failure(of: key, of: $0)) }
        }
        #expect(runs[0] == runs[1] && Set(runs[0]).count > 1)
    }

    @Test func aFailureEndsWithTheLastNanosecondOfItsLifetime() {
        let memory = makeMemory()
        memory.remember(missing, of: source, since: purges.epoch)
        #expect(memory.failure(of: key, of: source) == .remembered(missing, remaining: 60))
        time.add(1, ordering: .relaxed)
        // Rounded up, so that a client that waits so long finds it ended.
        #expect(remaining(memory.failure(of: key, of: source)) == 60)
        time.add(59_999_999_998, ordering: .relaxed)
        #expect(remaining(memory.failure(of: key, of: source)) == 1)
        time.add(1, ordering: .relaxed)
        #expect(memory.failure(of: key, of: source) == nil && memory.count == 0)
    }

    @Test func theFailuresOfASourceAreListedWithTheirAges() throws {
        let memory = makeMemory()
        memory.remember(unusable, of: source, since: purges.epoch)
        advance(30)
        memory.remember(missing, of: key, of: source, since: purges.epoch)
        memory.remember(missing, of: try SourceURL("https://a.test/2"), since: purges.epoch)
        advance(5)
        let found = memory.list(of: source)
        #expect(found.map(\.key) == [key, nil] && found.map(\.error) == [missing, unusable])
        #expect(found.map(\.age) == [5, 35] && found.map(\.remaining) == [55, 565])
        advance(56)
        #expect(memory.list(of: source).map(\.error) == [unusable])
        purge(.url(source.canonical), memory)
        #expect(memory.list(of: source).isEmpty && memory.count == 1)
    }

    @Test func aLaterFailureReplacesAnEarlierOne() {
        let memory = makeMemory()
        memory.remember(unusable, of: key, of: source, since: purges.epoch)
        memory.remember(missing, of: key, of: source, since: purges.epoch)
        #expect(memory.failure(of: key) == .remembered(missing, remaining: 60))
        #expect(memory.count == 1)
        #expect(memory.failure(of: AliasKey(sourceURL: source.canonical, rendition: "gif")) == nil)
    }

    @Test func aPurgeForgetsFailuresAndRefusesThoseOfRequestsUnderWay() throws {
        let memory = makeMemory()
        let (epoch, other) = (purges.epoch, try SourceURL("https://b.test/"))
        for source in [source, other] { memory.remember(missing, of: source, since: epoch) }
        purge(.prefix("https://a.test/"), memory)
        #expect(memory.failure(of: key, of: source) == nil && memory.failure(of: key, of: other) != nil)
        memory.remember(missing, of: source, since: epoch)
        #expect(memory.failure(of: key, of: source) == nil)
        purge(.all, memory)
        #expect(memory.count == 0)
    }

    @Test func theNumberOfFailuresIsBounded() throws {
        let memory = makeMemory(limit: 10)
        let sources = try (0..<100).map { try SourceURL("https://a.test/\($0)") }
        for source in sources { memory.remember(missing, of: source, since: purges.epoch) }
        #expect(memory.count == 10)
        #expect(memory.failure(of: key, of: sources[99]) != nil)
    }
}
