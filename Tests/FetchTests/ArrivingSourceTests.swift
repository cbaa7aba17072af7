import SystemIO
import TestSupport
import Testing

@testable import Fetch

@Suite("The bytes of a source are read while they arrive", .timeLimit(.minutes(10))) struct ArrivingSourceTests {
    private func file(_ text: String) throws -> SharedDescriptor {
        var file = try MemoryFile(name: "test")
        try Array(text.utf8).withUnsafeBytes { try file.append($0) }
        return file.reader
    }

    @Test func readersWaitForMoreBytesThanTheyKnow() async throws {
        let arriving = ArrivingSource()
        #expect(arriving.start == nil && arriving.isUsable)
        async let start = arriving.awaitStart()
        async let first = arriving.progress(after: 0)
        arriving.begin(.init(file: try file("abc"), length: 5), count: 3)
        let startResult = await start?.length
        #expect(startResult == 5)
        let firstResult = await first
        #expect(firstResult == .arrived(count: 3))
        async let second = arriving.progress(after: 3)
        arriving.advance(to: 4)
        let secondResult = await second
        #expect(secondResult == .arrived(count: 4))
        async let last = arriving.progress(after: 4)
        arriving.complete(try fetched(5))
        let lastResult = await last
        #expect(lastResult == .complete(count: 5))
        // A late reader learns of the end at once.
        #expect(await arriving.progress(after: 0) == .complete(count: 5))
    }

    private func fetched(_ count: Int) throws -> FetchedSource {
        FetchedSource(
            bytes: try file("abcde"), count: count, sha256: [], validators: SourceValidators(),
            cacheDirectives: CacheDirectives(), duration: .zero)
    }

    @Test func aFailureEndsAllReaders() async throws {
        let arriving = ArrivingSource()
        arriving.begin(.init(file: try file("abc"), length: nil), count: 3)
        async let progress = arriving.progress(after: 3)
        arriving.fail()
        let progressResult = await progress
        #expect(progressResult == .failed(count: 3))
        #expect(arriving.start == nil && !arriving.isUsable)
        #expect(await arriving.awaitStart() == nil)
    }

    @Test func readersOfASourceThatIsCutOffGetNoMore() async throws {
        final class Memory: Sendable {}
        let arriving = ArrivingSource()
        arriving.begin(.init(file: try file("abc"), length: 5), count: 3)
        weak let bytes = arriving.file
        #expect(bytes != nil)
        var memory: Memory? = Memory()
        weak let held = memory
        if let memory { #expect(arriving.retain(memory) === memory && arriving.retain(Memory()) === memory) }
        memory = nil
        #expect(held != nil)
        async let progress = arriving.progress(after: 3)
        arriving.cutOff()
        let progressResult = await progress
        #expect(progressResult == .failed(count: 0))
        #expect(arriving.start == nil && arriving.file == nil && !arriving.isUsable)
        #expect(bytes == nil && held == nil && arriving.retain(Memory()) == nil)
    }

    @Test func aFetchWithoutContentHasNoStart() async {
        let arriving = ArrivingSource()
        async let start = arriving.awaitStart()
        arriving.fail()
        let startResult = await start
        #expect(startResult == nil)
    }

    @Test func aCancelledReaderStopsWaiting() async {
        let arriving = ArrivingSource()
        let readers = (0..<10).map { _ in
            Task {
                _ = await arriving.awaitStart()
                _ = await arriving.progress(after: 7)
            }
        }
        for reader in readers { reader.cancel() }
        for reader in readers { await reader.value }
    }

    @Test func oneFetchClaimsIt() {
        let arriving = ArrivingSource()
        #expect(arriving.claim() && !arriving.claim())
    }

    @Test func theFetcherShowsBytesBeforeTheEndAndOnlyThoseOfAGIF() async throws {
        let gate = try LoopbackGate()
        let gif = GIFBuilder.animation(frames: 4)
        try await withOrigin { origin, fetcher async throws in
            origin.on(
                "/a.gif",
                LoopbackAnswer(steps: [
                    .send(Array("HTTP/1.1 200 OK\r\nContent-Length: \(gif.count)\r\n\r\n".utf8) + gif[..<3]),
                    .send(Array(gif[3..<20])), .wait(until: gate), .send(Array(gif[20...])),
                ]))
            origin.on("/page.gif", .ok(Array("<html>".utf8)))
            origin.on("/moved.gif", .redirect(to: "/a.gif"))
            let arriving = ArrivingSource()
            let url = try SourceURL(origin.url("/moved.gif"))
            async let outcome = fetcher.fetch(url, arriving: arriving)
            let start = try #require(await arriving.awaitStart())
            var progress = await arriving.progress(after: 19)
            #expect(progress.count == 20 && start.length == gif.count)
            #expect(try start.file.read(100, at: 0) == Array(gif[..<20]))
            gate.open()
            guard case .fetched(let fetched) = try await outcome else { throw FetchError.closed }
            arriving.complete(fetched)
            progress = await arriving.progress(after: 0)
            #expect(progress.count == gif.count)
            #expect(try start.file.readAll() == gif)

            let page = ArrivingSource()
            await #expect(throws: FetchError.self) {
                try await fetcher.fetch(try SourceURL(origin.url("/page.gif")), arriving: page)
            }
            #expect(page.start == nil)
        }
    }
}
