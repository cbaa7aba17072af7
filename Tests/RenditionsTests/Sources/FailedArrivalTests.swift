import Fetch
import Store
import SystemIO
import Testing

@testable import Renditions

@Suite("What had arrived of a source outlasts its failed fetch") struct FailedArrivalTests {
    @Test func itIsKnownUntilTheNextFetchBegins() async throws {
        try await PipelineFixture.run { fixture async throws in
            let (sources, url) = (SharedSources(fixture.cache), try fixture.url("/a.gif"))
            let file = try MemoryFile(name: "test")
            weak var failed: ArrivingSource?
            do {
                let source = sources.open(url, epoch: fixture.cache.epoch)
                source.begin(ArrivingSource.Start(file: file.reader, length: 10), count: 3)
                sources.fail(source, of: url)
                #expect(!source.isUsable)
                failed = source
            }
            #expect(failed == nil)
            let arrived = sources.arrived(url)
            #expect(arrived?.count == 3 && arrived?.length == 10)
            let next = sources.open(url, epoch: fixture.cache.epoch)
            let before = sources.arrived(url)
            #expect(before?.count == nil)
            withExtendedLifetime(next) {}
        }
    }
}
