import Cache
import Crypto
import Glibc
import Logging
import Media
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Fetch
@testable import Sandbox
@testable import Renditions

/// Two sources whose GIFs change and fail, a store in front of them, and some tasks that use it at once.
final class InterleavedWorld: Sendable {
    /// What happened.
    struct Counts: Sendable {
        var asked = 0
        var found = 0
        var failed = 0
        var fetches = 0
        var purges = 0

        mutating func add(_ other: Counts) {
            asked += other.asked
            found += other.found
            failed += other.failed
            fetches += other.fetches
            purges += other.purges
        }
    }

    private struct State {
        /// The version that each origin gives now; every fourth is a failure, and of another one rendition cannot be made.
        var versions: [UInt8] = [1, 1]
        /// The oldest that may still be given out.
        var floors: [UInt8] = [0, 0]
        var counts = Counts()
        /// Fetches and conversions that go on when somebody lets them.
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

    /// Runs some of what may happen at once to its end.
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
        // All of it once more, when nothing else is going on.
        await Task(executorPreference: executor) { [self] in
            for source in 0...1 {
                for quality in [60, 30] { await look(source, quality, pipeline) }
            }
        }.value
        executor.finish()
    }

    /// Lets one of those go on that are held. Because that is when nothing else can go on, whoever came after a purge has
    /// got as far as it can beside what was in flight before.
    private func releaseOne() {
        let released = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard let index = state.held.indices.randomElement(using: &state.generator) else { return nil }
            return state.held.remove(at: index)
        }
        released?.resume()
    }

    /// Takes some time, or, as often, until somebody lets it go on.
    private func takeTime() async {
        await Task.yield()
        let isHeld = state.withLock { Bool.random(using: &$0.generator) }
        guard isHeld else { return }
        await withCheckedContinuation { continuation in state.withLock { $0.held.append(continuation) } }
    }

    // MARK: What they do

    private func look(_ source: Int, _ quality: Int, _ pipeline: RenditionPipeline) async {
        let floor = state.withLock { state in
            state.counts.asked += 1
            return state.floors[source]
        }
        do throws(RenditionError) {
            let found = try await find(source, quality, pipeline)
            var bytes = [UInt8](repeating: 0, count: 3)
            let count = bytes.withUnsafeMutableBytes { pread(found.rendition.descriptor.number, $0.baseAddress, 3, 0) }
            guard count == 3, bytes[0] == UInt8(source), bytes[2] == UInt8(quality) else {
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

    /// Asks, and does not wait for the answer.
    private func leave(_ source: Int, _ quality: Int, _ pipeline: RenditionPipeline) async {
        let task = Task(executorPreference: executor) { _ = try? await self.find(source, quality, pipeline) }
        await Task.yield()
        task.cancel()
        await task.value
    }

    private func find(
        _ source: Int, _ quality: Int, _ pipeline: RenditionPipeline
    ) async throws(RenditionError) -> RenditionResult {
        var rendition = Rendition(format: .mp4)
        try rendition.set("quality", to: "\(quality)")
        let url: SourceURL
        do throws(SourceURLError) {
            url = try SourceURL(self.url(source))
        } catch {
            throw .invalidSourceURL(error)
        }
        return try await pipeline.find(RenditionRequest(rendition, of: url))
    }

    /// The origin has a new version, and whoever changed it purges the old one.
    private func purge(
        _ sources: [Int], _ scope: PurgeScope, _ pipeline: RenditionPipeline, _ purger: LocalPurger
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
        // Who comes now finds much of what was in flight still there.
        for quality in [60, 30] { await look(sources[0], quality, pipeline) }
    }

    // MARK: The store and what is behind it

    private func url(_ source: Int) -> String { "http://\(seed).test/\(source).gif" }

    private func makePipeline() -> (RenditionPipeline, LocalPurger) {
        let state = RenditionState(
            RenditionState.Limits(
                queueTimeout: .seconds(600), fetchLifetime: .seconds(600), missLifetime: .seconds(600), jobs: 1000,
                bytes: 1 << 30),
            clock: .system, executor: executor)
        let pipeline = RenditionPipeline(
            RenditionPipeline.Policy(originRules: OriginRules(), maxSourceBytes: 1000), state: state, cache: cache,
            fetch: { [self] url, validators async throws(FetchError) in try await fetch(url, validators) },
            convert: { [self] source, rendition, flight async throws(RenditionError) in
                try await convert(source, rendition, flight)
            },
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        return (pipeline, LocalPurger(cache: cache, state: state, tier: nil))
    }

    /// The origin: it takes its time before and after it looks which version it has.
    private func fetch(_ url: SourceURL, _ validators: SourceValidators) async throws(FetchError) -> FetchOutcome {
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
        guard var file = try? MemoryFile(name: "test"), (try? bytes.withUnsafeBytes({ try file.append($0) })) != nil,
            let sealed = try? file.seal()
        else { throw .exhausted(cause: "no file #0") }
        return .fetched(
            FetchedSource(
                bytes: sealed, count: bytes.count, sha256: Array(SHA256.hash(data: bytes)),
                validators: SourceValidators(etag: etag), cacheDirectives: CacheDirectives(), duration: .zero))
    }

    /// The worker: writes which source, version and rendition it was given.
    private func convert(
        _ source: Source, _ rendition: Rendition, _ flight: Flight
    ) async throws(RenditionError) -> Converter.Conversion {
        flight.markQueued()
        await Task.yield()
        flight.turn.begin()
        await takeTime()
        var bytes = [UInt8](repeating: 0, count: 2)
        guard let staged = try? cache.stage(expecting: 0), pread(source.bytes.number, &bytes, 2, 0) == 2 else {
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
            .rejected(.tooLarge(.frames, value: Int(version), maximum: 0)), allowance: WorkerJob.Allowance())
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
