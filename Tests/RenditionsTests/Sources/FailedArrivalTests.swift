import Cache
import Fetch
import SystemIO
import Testing

@testable import Renditions

@Suite("What had arrived of a source outlasts its failed fetch") struct FailedArrivalTests {
    @Test func itIsKnownUntilTheNextFetchBegins() async throws {
        try await PipelineFixture.run { fixture async throws in
            let (arrivals, url) = (SourceArrivals(), try fixture.url("/a.gif"))
            let file = try MemoryFile(name: "test")
            weak var failed: ArrivingSource?
            do {
                let source = arrivals.open(url, epoch: fixture.cache.epoch(for: url.canonical), in: fixture.cache)
                source.begin(ArrivingSource.Start(file: file.reader, length: 10), count: 3)
                arrivals.fail(source, of: url)
                #expect(!source.isUsable)
                failed = source
            }
            #expect(failed == nil)
            let arrived = arrivals.arrived(url)
            #expect(arrived?.count == 3 && arrived?.length == 10)
            let next = arrivals.open(url, epoch: fixture.cache.epoch(for: url.canonical), in: fixture.cache)
            let before = arrivals.arrived(url)
            #expect(before?.count == nil)
            withExtendedLifetime(next) {}
        }
    }
}
