import Foundation
import Glibc
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Fetch

@Suite("A mount can serve the files of a directory, and nothing outside it") struct FileSourceTests {
    private let directory: ScratchDirectory
    private let root: String

    init() throws {
        directory = try ScratchDirectory()
        root = directory.path + "/root/"
        try FileManager.default.createDirectory(atPath: root + "sub", withIntermediateDirectories: true)
        try Self.write(TestGIF.dot, root + "a.gif")
        try Self.write(TestGIF.large(400_000), root + "sub/b ü%.gif")
        try Self.write(TestGIF.dot, directory.path + "/outside.gif")
    }

    private static func write(_ bytes: [UInt8], _ path: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }

    private func url(_ path: String) throws -> SourceURL {
        try MountRule(SourceURL(directory: root)).source("file://" + root + path)
    }

    /// Work on a file system whose server does not answer until the test ends.
    private final class StuckWork: BlockingWork {
        let submitted = Mutex(0)
        let isClosing = Mutex(false)
        let answer = Semaphore()

        func submit(_ work: @escaping Work) -> Bool {
            submitted.withLock { $0 += 1 }
            return true
        }

        func close() {
            isClosing.withLock { $0 = true }
            answer.wait()
        }
    }

    private func configuration(_ directories: [String], timeout: Duration = .seconds(30)) throws -> FetchConfiguration {
        var configuration = FetchConfiguration()
        // Patterns are for hosts.
        (configuration.allow, configuration.timeout) = ([], timeout)
        configuration.mounts = try directories.map { MountRule(try SourceURL(directory: $0)) }
        return configuration
    }

    @Test func aStopWaitsForNoNetworkFileSystem() async throws {
        let work = StuckWork()
        defer { work.answer.signal() }
        let fetcher = try Fetcher(try configuration([root], timeout: .milliseconds(20))) { work }
        let source = try url("a.gif")
        await #expect(throws: FetchError.timeout(.total, limit: .milliseconds(20))) { try await fetcher.fetch(source) }
        fetcher.shutdown()
        try await waitUntil("the end of the threads") { work.isClosing.withLock { $0 } }
        await #expect(throws: FetchError.busy) { try await fetcher.fetch(source) }
    }

    @Test(.timeLimit(.minutes(1))) func aFetchWaitsForNoNetworkFileSystemBeyondItsLimit() async throws {
        let work = StuckWork()
        defer { work.answer.signal() }
        let fetcher = try Fetcher(try configuration([root], timeout: .milliseconds(20))) { work }
        let source = try url("a.gif")
        await #expect(throws: FetchError.timeout(.total, limit: .milliseconds(20))) { try await fetcher.fetch(source) }
        fetcher.reconfigure(try configuration([root], timeout: .seconds(600)))
        let task = Task { try await fetcher.fetch(source) }
        task.cancel()
        await #expect(throws: FetchError.cancelled) { try await task.value }
    }

    @Test(.timeLimit(.minutes(1))) func aFileSystemThatDoesNotAnswerDelaysNoOtherDirectory() async throws {
        let other = directory.path + "/other/"
        try FileManager.default.createDirectory(atPath: other, withIntermediateDirectories: true)
        try Self.write(TestGIF.dot, other + "b.gif")
        let work = StuckWork()
        defer { work.answer.signal() }
        let made = Mutex(0)
        let fetcher = try Fetcher(try configuration([root, other])) {
            made.withLock { made -> any BlockingWork in
                made += 1
                return made == 1 ? work : WorkThreads(count: 1, limit: 8, name: "test-files")
            }
        }
        defer { fetcher.shutdown() }
        let (stuck, good) = (try url("a.gif"), try MountRule(SourceURL(directory: other)).source("file://" + other + "b.gif"))
        #expect(stuck.origin == root && good.origin == other)
        let waiting = Task { try await fetcher.fetch(stuck) }
        try await waitUntil("the read that hangs") { work.submitted.withLock { $0 } == 1 }
        for _ in 0..<2 { #expect(try fetched(try await fetcher.fetch(good)).count == TestGIF.dot.count) }
        #expect(made.withLock { $0 } == 2)
        // A directory without a mount needs no threads.
        fetcher.reconfigure(try configuration([other]))
        try await waitUntil("the end of the threads") { work.isClosing.withLock { $0 } }
        #expect(try fetched(try await fetcher.fetch(good)).count == TestGIF.dot.count)
        #expect(made.withLock { $0 } == 2)
        waiting.cancel()
        await #expect(throws: FetchError.cancelled) { try await waiting.value }
    }

    @Test func aFileWhoseCallerHasLeftIsNotRead() async throws {
        let threads = WorkThreads(count: 1, limit: 8, name: "test-files")
        let fetcher = try Fetcher(try configuration([root], timeout: .milliseconds(20))) { threads }
        let source = try url("a.gif")
        let answer = Semaphore()
        let isBlocked = threads.submit { answer.wait() }
        await #expect(throws: FetchError.timeout(.total, limit: .milliseconds(20))) { try await fetcher.fetch(source) }
        answer.signal()
        let isFree = await threads.run { true }
        #expect(isBlocked && isFree == true)
        #expect(fetcher.counters().bytes == 0)
        fetcher.shutdown()
    }

    @Test func aFileWaitsUntilItMayBeRead() async throws {
        try await withFetcher({ $0.timeout = .seconds(60) }) { fetcher in
            let gate = TestGate()
            let source = try url("a.gif")
            let waiting = Task { try await fetcher.fetch(source, arriving: gate.arriving) }
            try await waitUntil("the second question") { gate.asked > 1 }
            #expect(fetcher.counters().bytes == 0)
            gate.open()
            #expect(try fetched(try await waiting.value).count == TestGIF.dot.count)
        }
    }

    @Test(.timeLimit(.minutes(1))) func aFileThatMayNotBeReadInTimeIsRefused() async throws {
        let (source, gate) = (try url("a.gif"), TestGate())
        try await withFetcher({ $0.timeout = .milliseconds(100) }) { fetcher in
            await #expect(throws: FetchError.busy) { try await fetcher.fetch(source, arriving: gate.arriving) }
            #expect(gate.asked > 1)
        }
        try await withFetcher({ $0.timeout = .seconds(600) }) { fetcher in
            let task = Task { try await fetcher.fetch(source, arriving: gate.arriving) }
            task.cancel()
            await #expect(throws: FetchError.cancelled) { try await task.value }
        }
    }

    private func withFetcher(
        _ change: (inout FetchConfiguration) -> Void = { _ in }, _ body: (Fetcher) async throws -> Void
    ) async throws {
        var configuration = FetchConfiguration()
        // Patterns are for hosts.
        configuration.allow = []
        if let directory = try? SourceURL(directory: root) { configuration.mounts = [MountRule(directory)] }
        change(&configuration)
        let fetcher = try Fetcher(configuration: configuration)
        defer { fetcher.shutdown() }
        try await body(fetcher)
    }

    private func fetched(_ outcome: FetchOutcome) throws -> FetchedSource {
        guard case .fetched(let source) = outcome else { throw FetchError.closed }
        return source
    }

    @Test func aFileIsReadAndShownWhileItIsRead() async throws {
        try await withFetcher { fetcher in
            let arriving = ArrivingSource()
            let source = try fetched(try await fetcher.fetch(url("sub/b%20%c3%BC%25.gif"), arriving: arriving))
            #expect(try source.bytes.readAll() == TestGIF.large(400_000) && source.count == 400_000)
            #expect(arriving.start?.length == 400_000 && arriving.count == 400_000)
            #expect(source.validators.etag != nil && source.validators.lastModified == nil)
            #expect(fetcher.counters().bytes == 400_000)
        }
    }

    @Test func aFileThatHasNotChangedIsNotReadAgain() async throws {
        try await withFetcher { fetcher in
            let first = try fetched(try await fetcher.fetch(url("a.gif")))
            guard case .notModified(let same) = try await fetcher.fetch(url("a.gif"), validators: first.validators) else {
                Issue.record("read again")
                return
            }
            #expect(same.validators == first.validators)
            // The same size and, by the program that writes it, the same time.
            var times = stat()
            #expect(stat(root + "a.gif", &times) == 0)
            try Self.write(TestGIF.dot.dropLast() + [0x3c], root + "a.gif")
            var former = [times.st_atim, times.st_mtim]
            #expect(utimensat(AT_FDCWD, root + "a.gif", &former, 0) == 0)
            let second = try fetched(try await fetcher.fetch(url("a.gif"), validators: first.validators))
            #expect(second.validators != first.validators && second.sha256 != first.sha256)
        }
    }

    @Test func symbolicLinksDoNotLeadOutOfTheDirectory() async throws {
        for (name, target) in [
            ("inside.gif", "sub/../a.gif"), ("up.gif", "../outside.gif"), ("absolute.gif", directory.path + "/outside.gif"),
            ("loop.gif", "loop.gif"), ("proc.gif", "/proc/self/exe"),
        ] {
            try FileManager.default.createSymbolicLink(atPath: root + name, withDestinationPath: target)
        }
        try FileManager.default.createSymbolicLink(atPath: root + "out", withDestinationPath: directory.path)
        try await withFetcher { fetcher in
            let inside = try fetched(try await fetcher.fetch(url("inside.gif")))
            #expect(inside.count == TestGIF.dot.count)
            for path in ["up.gif", "absolute.gif", "loop.gif", "proc.gif", "out/outside.gif", "out/root/a.gif"] {
                await #expect(throws: FetchError.notFound, "\(path)") { try await fetcher.fetch(url(path)) }
            }
        }
    }

    @Test func whatIsNoRegularFileIsMissing() async throws {
        #expect(mkfifo(root + "fifo.gif", 0o600) == 0)
        try Self.write([], root + "empty.gif")
        try Self.write(Array("<html>".utf8), root + "page.gif")
        try await withFetcher { fetcher in
            for path in ["none.gif", "a.gif/b.gif", "sub", "fifo.gif"] {
                await #expect(throws: FetchError.notFound, "\(path)") { try await fetcher.fetch(url(path)) }
            }
            await #expect(throws: FetchError.notAnAnimation(looksLike: .empty)) { try await fetcher.fetch(url("empty.gif")) }
            await #expect(throws: FetchError.notAnAnimation(looksLike: .html)) { try await fetcher.fetch(url("page.gif")) }
        }
        try await withFetcher({ $0.maxBytes = 399_999 }) { fetcher in
            await #expect(throws: FetchError.tooLarge(limit: 399_999, declared: 400_000)) {
                try await fetcher.fetch(url("sub/b ü%25.gif".replacing(" ", with: "%20").replacing("ü", with: "%C3%BC")))
            }
        }
    }

    @Test func aMissingDirectoryIsTheOriginsFaultAndAnotherOneIsRefused() async throws {
        let url = try url("a.gif")
        let other = MountRule(try SourceURL(directory: directory.path + "/other/"))
        try await withFetcher({ $0.mounts = [other] }) { fetcher in
            await #expect(throws: FetchError.notAllowed(.pattern)) { try await fetcher.fetch(url) }
        }
        try await withFetcher { fetcher in
            try FileManager.default.removeItem(atPath: root)
            let error = await #expect(throws: FetchError.self) { try await fetcher.fetch(url) }
            guard case .unreachable? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    /// The system refuses to open it without a wait until the holder gives up the lease, which is soon.
    @Test func aFileOnWhichAProgramHasALeaseIsNotMissing() async throws {
        let file = open(root + "a.gif", O_RDWR | O_CLOEXEC)
        defer { close(file) }
        // F_SETSIG and F_SETLEASE (fcntl(2)). The break of a lease sends SIGIO by default, which would end the process.
        let (setSignal, setLease): (Int32, Int32) = (10, 1024)
        try #require(fcntl(file, setSignal, SIGURG) == 0 && fcntl(file, setLease, Int32(F_WRLCK)) == 0, "no leases")
        try await withFetcher { fetcher in
            let error = await #expect(throws: FetchError.self) { try await fetcher.fetch(try url("a.gif")) }
            guard case .unreachable? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test func aFileIsReadWhoseNameIsNoUTF8() async throws {
        let name = Array("\(root)caf".utf8) + [0xe9] + Array(".gif\0".utf8)
        let path = name.map { CChar(bitPattern: $0) }
        let file = try #require(path.withUnsafeBufferPointer { $0.baseAddress.flatMap { fopen($0, "w") } })
        #expect(fwrite(TestGIF.dot, 1, TestGIF.dot.count, file) == TestGIF.dot.count && fclose(file) == 0)
        try await withFetcher { fetcher in
            let source = try url("caf%e9.gif")
            #expect(source.canonical.hasSuffix("/caf%E9.gif"))
            #expect(try fetched(try await fetcher.fetch(source)).count == TestGIF.dot.count)
        }
    }

    /// A mark that combines with the slash before it must not hide a segment.
    @Test(arguments: ["x/..%2F%CC%81a.gif", "x%2F%CC%81/%2Fa.gif", "..%2F%CC%81/a.gif"])
    func aSegmentEndsAtEachSlash(_ path: String) {
        #expect(throws: SourceURLError.malformed) { try FileAddress("file:///srv/gifs/" + path, below: "/srv/gifs/") }
        #expect(throws: SourceURLError.malformed) { try SourceURL.canonicalText(of: "s3://bucket/" + path) }
    }

    @Test func theTextOfAPurgeMayHaveAnyCharacters() throws {
        #expect(try SourceURL.canonicalText(of: "FILE:///\u{301}/a.gif") == "file:///%CC%81/a.gif")
        #expect(try SourceURL.canonicalText(of: "s3://bucket/\u{301}.gif") == "s3://bucket/%CC%81.gif")
        #expect(throws: SourceURLError.badCharacter) { try SourceURL.canonicalText(of: "s3://bucket/caf%E9.gif") }
    }

    @Test(arguments: ["..%2Foutside.gif", "x/..%2F..%2Fa.gif", "a%00.gif", "x//a.gif", "/a.gif", "a.gif?b"])
    func aPathThatCouldLeadElsewhereIsNoSource(_ path: String) {
        #expect(throws: SourceURLError.self) { try FileAddress("file:///srv/gifs/" + path, below: "/srv/gifs/") }
    }

    @Test(arguments: ["../a.gif", "x/../a.gif", "%2e%2e/a.gif", "./a.gif"])
    func dotSegmentsAreResolvedWithinTheDirectory(_ path: String) throws {
        #expect(try FileAddress("file:///srv/gifs/" + path, below: "/srv/gifs/").canonical == "file:///srv/gifs/a.gif")
    }

    @Test func onlyAMountCanNameAFile() {
        for text in ["file:///etc/passwd", "FILE:///srv/a.gif"] {
            #expect(throws: SourceURLError.unsupportedScheme) { try SourceURL(text) }
        }
        #expect(throws: SourceURLError.unsupportedScheme) {
            try FileAddress("file:///srv/other/a.gif", below: "/srv/gifs/")
        }
    }
}
