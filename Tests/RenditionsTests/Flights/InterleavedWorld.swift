import Digests
import Glibc
import Logging
@testable import Media
import Store
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Fetch
@testable import Sandbox
@testable import Renditions

/// Two sources whose GIFs change and fail, a cache in front of them, and tasks that use it concurrently.
final class InterleavedWorld: Sendable {
    /// What happened.
    struct Counts: Sendable {
        var asked = 0
        var found = 0
        var failed = 0
        var fetches = 0
        var purges = 0
        var followed = 0

        mutating func add(_ other: Counts) {
            asked += other.asked
            found += other.found
            failed += other.failed
            fetches += other.fetches
            purges += other.purges
            followed += other.followed
        }
    }

    private struct State {
        /// The current version of each source. Every fourth is a failure, and of another one a rendition cannot be produced.
        var versions: [UInt8] = [1, 1]
        /// The oldest versions that may still be answered.
        var floors: [UInt8] = [0, 0]
        var counts = Counts()
        /// Suspended fetches and conversions.
        var held: [CheckedContinuation<Void, Never>] = []
        var generator: SeededNumbers
    }

    private let state: Mutex<State>
    private let seed: UInt64
    private let cache: Cache
    private let executor = SeededExecutor()

    init(cache: Cache, seed: UInt64) {
        self.cache = cache
        self.seed = seed
        var start = State(generator: SeededNumbers(seed: seed ^ 0x5eed))
        start.versions = [UInt8(1 + seed % 4), 1]
        state = Mutex(start)
    }

    var counts: Counts { state.withLock(\.counts) }

    /// Runs a random selection of concurrent tasks to their end.
    func run() async {
        let (pipeline, purger) = makePipeline()
        var generator = SeededNumbers(seed: seed ^ 0xabcdef)
        var works: [@Sendable () async -> Void] = []
        for _ in 0..<Int.random(in: 4...9, using: &generator) {
            let source = Int.random(in: 0...9, using: &generator) < 8 ? 0 : 1
            let quality = Bool.random(using: &generator) ? 60 : 30
            switch Int.random(in: 0...9, using: &generator) {
            case 0...5: works.append { await self.look(source, quality, pipeline) }
            case 6: works.append { await self.leave(source, quality, pipeline) }
            case 7: works.append { await self.purge([source], .url(self.url(source)), pipeline, purger) }
            case 8: works.append { await self.purge([0, 1], .prefix("http://\(self.seed).test/"), pipeline, purger) }
            default: works.append { await self.purge([0, 1], .all, pipeline, purger) }
            }
        }
        executor.start(seed: seed) { [self] in releaseOne() }
        let tasks = works.map { work in Task(executorPreference: executor) { await work() } }
        for task in tasks { await task.value }
        // Every rendition once more, without concurrent work.
        await Task(executorPreference: executor) { [self] in
            for source in 0...1 {
                for quality in [60, 30] { await look(source, quality, pipeline) }
            }
        }.value
        executor.finish()
    }

    /// Resumes one suspended fetch or conversion. The executor calls this when no other task can run, so every call after a
    /// purge has got as far as it can while earlier work is in progress.
    private func releaseOne() {
        let released = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard let index = state.held.indices.randomElement(using: &state.generator) else { return nil }
            return state.held.remove(at: index)
        }
        released?.resume()
    }

    /// Yields once, and with probability one half suspends until it is released.
    private func takeTime() async {
        await Task.yield()
        let isHeld = state.withLock { Bool.random(using: &$0.generator) }
        guard isHeld else { return }
        await withCheckedContinuation { continuation in state.withLock { $0.held.append(continuation) } }
    }

    // MARK: Tasks

    private func look(_ source: Int, _ quality: Int, _ pipeline: RenditionPipeline) async {
        let (floor, isFollowing) = state.withLock { state in
            state.counts.asked += 1
            return (state.floors[source], Int.random(in: 0...2, using: &state.generator) == 0)
        }
        do throws(RenditionError) {
            let bytes = try await isFollowing ? follow(source, quality, pipeline) : find(source, quality, pipeline)
            guard bytes.count >= 3, bytes[0] == UInt8(source), isFollowing || bytes[2] == UInt8(quality) else {
                return record("\(seed): another rendition's bytes")
            }
            if bytes[1] < floor { Issue.record("\(seed): version \(bytes[1]) after a purge of all before \(floor)") }
            state.withLock { $0.counts.found += 1 }
        } catch {
            guard let version = error.version else { return record("\(seed): \(error)") }
            if version < floor { Issue.record("\(seed): failure of \(version) after a purge of all before \(floor)") }
            state.withLock { $0.counts.failed += 1 }
        }
    }

    private func record(_ what: String) {
        Issue.record("\(what)")
    }

    /// Requests a rendition and leaves before the answer.
    private func leave(_ source: Int, _ quality: Int, _ pipeline: RenditionPipeline) async {
        let task = Task(executorPreference: executor) { _ = try? await self.find(source, quality, pipeline) }
        await Task.yield()
        task.cancel()
        await task.value
    }

    /// The first bytes of the rendition.
    private func find(
        _ source: Int, _ quality: Int, _ pipeline: RenditionPipeline
    ) async throws(RenditionError) -> [UInt8] {
        firstBytes(try await pipeline.find(try request(source, quality)))
    }

    /// All bytes of the source, or the first ones of the rendition if that is stored.
    private func follow(
        _ source: Int, _ quality: Int, _ pipeline: RenditionPipeline
    ) async throws(RenditionError) -> [UInt8] {
        switch try await pipeline.findOrFollow(try request(source, quality)) {
        case .rendition(let result): return firstBytes(result)
        case .source(let followed):
            var bytes: [UInt8] = []
            do {
                try await followed.forEachPiece { bytes += $0 }
            } catch {
                record("\(seed): \(error)")
            }
            state.withLock { $0.counts.followed += 1 }
            return bytes
        }
    }

    private func firstBytes(_ result: RenditionResult) -> [UInt8] {
        (try? result.rendition.descriptor.read(3, at: 0)) ?? []
    }

    private func request(_ source: Int, _ quality: Int) throws(RenditionError) -> RenditionRequest {
        var rendition = Rendition(format: .mp4)
        try rendition.set("quality", to: "\(quality)")
        let url: SourceURL
        do throws(SourceURLError) {
            url = try SourceURL(self.url(source))
        } catch {
            throw .invalidSourceURL(error)
        }
        return RenditionRequest(rendition, of: url)
    }

    /// Gives the origin a new version and purges the old one.
    private func purge(
        _ sources: [Int], _ scope: PurgeScope, _ pipeline: RenditionPipeline, _ purger: Purges
    ) async {
        let versions = state.withLock { state in
            for source in sources { state.versions[source] += 1 }
            return state.versions
        }
        await Task.yield()
        do {
            _ = try await purger.purge(scope)
        } catch {
            Issue.record(error)
        }
        state.withLock { state in
            state.counts.purges += 1
            for source in sources { state.floors[source] = max(state.floors[source], versions[source]) }
        }
        // These calls find earlier work still in progress.
        for quality in [60, 30] { await look(sources[0], quality, pipeline) }
    }

    // MARK: The pipeline, its origin and its worker

    private func url(_ source: Int) -> String { "http://\(seed).test/\(source).gif" }

    private func makePipeline() -> (RenditionPipeline, Purges) {
        let state = RenditionState(
            RenditionState.Limits(
                queueTimeout: .seconds(600), fetchLifetime: .seconds(600), missLifetime: .seconds(600), jobs: 1000,
                bytes: 1 << 30, fetches: 64),
            cache: cache, clock: .system, executor: executor)
        let pipeline = RenditionPipeline(
            RenditionPipeline.Policy(originRules: .lasting(), maxSourceBytes: 1000), state: state,
            cache: cache,
            fetch: { [self] url, validators, arriving async throws(FetchError) in
                try await fetch(url, validators, arriving)
            },
            convert: { [self] source, rendition, flight async throws(RenditionError) in
                try await convert(source, rendition, flight)
            },
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        return (pipeline, Purges(cache: cache, state: state, outbox: nil))
    }

    /// The origin: it takes its time before and after it looks which version it has.
    private func fetch(
        _ url: SourceURL, _ validators: SourceValidators, _ arriving: ArrivingSource
    ) async throws(FetchError) -> FetchOutcome {
        await Task.yield()
        let source = url.path == "/0.gif" ? 0 : 1
        let version = state.withLock { state in
            state.counts.fetches += 1
            return state.versions[source]
        }
        await takeTime()
        if version % 4 == 0 { throw .failed(.protocolViolation(cause: "#\(version)")) }
        let etag = "\"\(version)\""
        if validators.etag == etag {
            return .notModified(
                UnmodifiedSource(validators: validators, cacheDirectives: CacheDirectives(), duration: .zero))
        }
        let bytes = [UInt8(source), version] + Array("\(seed)".utf8)
        guard var file = try? MemoryFile(name: "test"), append(bytes.prefix(2), to: &file) else {
            throw .exhausted(cause: "no file #0")
        }
        arriving.begin(ArrivingSource.Start(file: file.reader, length: bytes.count), count: 2)
        await takeTime()
        guard append(bytes.dropFirst(2), to: &file), let sealed = try? file.seal() else {
            throw .exhausted(cause: "no file #0")
        }
        return .fetched(
            FetchedSource(
                bytes: sealed, count: bytes.count, sha256: SHA256.hash(bytes),
                validators: SourceValidators(etag: etag), cacheDirectives: CacheDirectives(), duration: .zero))
    }

    private func append(_ bytes: ArraySlice<UInt8>, to file: inout MemoryFile) -> Bool {
        (try? bytes.withUnsafeBytes { try file.append($0) }) != nil
    }

    /// The worker: writes which source, version and rendition it was given.
    private func convert(
        _ source: SourceFile, _ rendition: Rendition, _ flight: Flight
    ) async throws(RenditionError) -> Converter.Conversion {
        flight.markQueued()
        await Task.yield()
        flight.turn.begin()
        await takeTime()
        var bytes = [UInt8](repeating: 0, count: 2)
        guard let staged = try? await cache.stage(expecting: 0), pread(source.bytes.number, &bytes, 2, 0) == 2 else {
            throw .overloaded(cause: nil)
        }
        if bytes[1] % 4 == 2, rendition.options.quality == 30 {
            throw .workerFailure(version: bytes[1])
        }
        bytes.append(UInt8(rendition.options.quality))
        guard write(staged.descriptor.number, bytes, 3) == 3 else { throw .overloaded(cause: nil) }
        let result = TranscodeResult(
            sourceWidth: 1, sourceHeight: 1, width: 2, height: 2, frames: 1, samples: 1, duration: 1, loopCount: nil, bytes: 3)
        return Converter.Conversion(
            file: staged,
            report: WorkerReport(result: result, queued: .zero, ran: .zero, cpuMicroseconds: 0, peakBytes: 0))
    }
}

extension RenditionError {
    /// A conversion that failed because of the version of its GIF.
    fileprivate static func workerFailure(version: UInt8) -> RenditionError {
        .conversionFailed(
            .rejected(.tooLarge(.frames, value: Int(version), maximum: 0)), allowance: WorkerAllowance())
    }

    /// The version of the GIF that failed.
    fileprivate var version: UInt8? {
        switch self {
        case .remembered(let error, _): error.version
        case .conversionFailed(.rejected(.tooLarge(_, let version, _)), _): UInt8(version)
        case .fetchFailed(.failed(.protocolViolation(let cause))): UInt8(cause.dropFirst())
        default: nil
        }
    }
}
