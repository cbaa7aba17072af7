import Digests
import Foundation
import Logging
@testable import Media
import Synchronization
import SystemIO
import Testing
import TestSupport

@testable import Fetch
@testable import Renditions
@testable import Sandbox
@testable import Store

/// A pipeline over a real cache. Its origin and its worker follow a script, and its clock moves by hand.
final class PipelineFixture: Sendable {
    /// What the origin answers for a path.
    enum Answer: Sendable {
        /// A body; 304 if the request has the same tag. A JPEG arrives only where images are accepted.
        case content([UInt8], etag: String? = nil, CacheDirectives = CacheDirectives())
        case failure(FetchError)
    }

    struct Fetched: Sendable, Equatable {
        let path: String
        let etag: String?
    }

    private struct State {
        var answers: [String: Answer] = [:]
        var fetches: [Fetched] = []
        var conversions: [String] = []
        var conversionError: RenditionError?
        var convertedCount = 8
        var frames = 5
        var breaksOff = false
        var seconds: Int64 = 1_700_000_000
        /// What the wall clock was set back by.
        var setBack: Int64 = 0
    }

    /// Suspends fetches after half of the body, and conversions before their end.
    struct Gates: Sendable {
        var fetch: AsyncGate?
        var conversion: AsyncGate?
        /// Whether a fetch waits until it may begin. Otherwise it fails.
        var waits = false
    }

    let cache: Cache
    let pipeline: RenditionPipeline
    let renditionState: RenditionState
    let purger: Purges
    private let script: Script
    private let folder: URL

    /// Runs `body` with a pipeline, and removes its files.
    static func run(
        jobs: Int = 64, rules: OriginRules = .lasting(), gates: Gates = Gates(), tier: (any SharedTier)? = nil,
        coordinator: (any NodeCoordinator)? = nil, threads: CacheThreads = .system, blocks: BlockList? = nil,
        _ body: (PipelineFixture) async throws -> Void
    ) async throws {
        let fixture = try PipelineFixture(jobs, rules, gates, tier, coordinator, threads, blocks)
        defer { fixture.close() }
        try await body(fixture)
    }

    private init(
        _ jobs: Int, _ rules: OriginRules, _ gates: Gates, _ tier: (any SharedTier)?, _ coordinator: (any NodeCoordinator)?,
        _ threads: CacheThreads, _ blocks: BlockList?
    ) throws {
        folder = URL(fileURLWithPath: "/dev/shm").appendingPathComponent("gifreel-pipeline-\(UUID().uuidString)")
        let script = Script()
        let clock = TimeSource(
            unixSeconds: { script.state.withLock { $0.seconds - $0.setBack } },
            monotonicNanoseconds: { UInt64(script.state.withLock { $0.seconds }) * 1_000_000_000 })
        var configuration = CacheConfiguration()
        configuration.directory = folder.path
        configuration.minFreeBytes = 0
        configuration.freshFor = 100
        configuration.staleFor = 1000
        let cache = try Cache(configuration: configuration, clock: clock, threads: threads, onStep: nil)
        self.cache = cache
        renditionState = RenditionState(
            RenditionState.Limits(
                queueTimeout: .seconds(600), fetchLifetime: .seconds(600), missLifetime: .seconds(600), jobs: jobs,
                bytes: 1 << 30, fetches: 64),
            cache: cache, clock: clock)
        var policy = RenditionPipeline.Policy(originRules: rules, maxSourceBytes: 1000)
        policy.blocks = blocks
        pipeline = RenditionPipeline(
            policy, state: renditionState,
            cache: cache,
            clock: clock,
            fetch: { url, validators, arriving async throws(FetchError) in
                try await script.fetch(url, validators, arriving, gates)
            },
            convert: { source, rendition, flight async throws(RenditionError) in
                try await script.convert(source, rendition, flight, cache, gates.conversion)
            },
            tier: tier, coordinator: coordinator, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        purger = Purges(cache: cache, state: renditionState, outbox: nil)
        self.script = script
    }

    private func close() {
        cache.close()
        try? FileManager.default.removeItem(at: folder)
    }

    // MARK: The script

    /// Sets what the origin answers for a path.
    func answer(_ path: String, _ answer: Answer) {
        script.state.withLock { $0.answers[path] = answer }
    }

    /// Makes conversions fail, or succeed.
    func failConversions(_ error: RenditionError?) {
        script.state.withLock { $0.conversionError = error }
    }

    /// Sets the size of renditions that are produced from now on.
    func setConvertedCount(_ count: Int) {
        script.state.withLock { $0.convertedCount = count }
    }

    /// Sets whether sources break off that are converted from now on.
    func setBreaksOff(_ breaksOff: Bool) {
        script.state.withLock { $0.breaksOff = breaksOff }
    }

    /// Moves the clock.
    func advance(_ seconds: Int64) {
        script.state.withLock { $0.seconds += seconds }
    }

    /// Sets the wall clock back.
    func setBack(_ seconds: Int64) {
        script.state.withLock { $0.setBack += seconds }
    }

    var fetches: [Fetched] { script.state.withLock { $0.fetches } }
    /// The canonical texts of the renditions that were converted.
    var conversions: [String] { script.state.withLock { $0.conversions } }

    /// The path of the cache's database.
    var ledgerPath: String { folder.path + "/" + Ledger.fileName }

    // MARK: Requests

    /// Whether a source is known to fail, and the work that found it out has ended.
    func hasFailed(_ path: String) throws -> Bool {
        pipeline.isKnownToFail(try request(path)) && renditionState.missesInProgress == 0
    }

    func url(_ path: String) throws -> SourceURL { try SourceURL("https://a.test\(path)") }

    func request(
        _ path: String, _ format: Rendition.Format = .mp4, _ options: [String: String] = [:],
        allowance: MissAllowance = .unlimited,
        alternative: Rendition? = nil
    ) throws -> RenditionRequest {
        var rendition = Rendition(format: format)
        for (name, value) in options { try rendition.set(name, to: value) }
        return RenditionRequest(rendition, of: try url(path), allowance: allowance, alternative: alternative)
    }

    func find(
        _ path: String, _ format: Rendition.Format = .mp4, _ options: [String: String] = [:]
    ) async throws -> RenditionResult {
        try await pipeline.find(request(path, format, options))
    }

    /// The error of a request.
    func error(of path: String, _ format: Rendition.Format = .mp4) async throws -> RenditionError? {
        let request = try request(path, format)
        do throws(RenditionError) {
            _ = try await pipeline.find(request)
            return nil
        } catch {
            return error
        }
    }

    /// The behaviour of origin and worker. A class of its own, because the pipeline's closures hold it.
    private final class Script: Sendable {
        let state = Mutex(State())

        func fetch(
            _ url: SourceURL, _ validators: SourceValidators, _ arriving: ArrivingSource, _ gates: Gates
        ) async throws(FetchError) -> FetchOutcome {
            if gates.waits { try? await waitUntil("the permission to fetch") { arriving.mayBegin() } }
            guard arriving.mayBegin() else { throw .busy }
            let gate = gates.fetch
            let answer = state.withLock { state in
                state.fetches.append(Fetched(path: url.path, etag: validators.etag))
                return state.answers[url.path] ?? .failure(.notFound)
            }
            switch answer {
            case .failure(let error):
                await gate?.pass()
                throw error
            case .content(let bytes, _, _) where bytes.starts(with: [0xff, 0xd8, 0xff]) && !arriving.acceptsImages:
                throw .notAnAnimation(looksLike: .jpeg)
            case .content(_, let etag?, let directives) where validators.etag == etag:
                await gate?.pass()
                return .notModified(
                    UnmodifiedSource(validators: validators, cacheDirectives: directives, duration: .milliseconds(1)))
            case .content(let bytes, let etag, let directives):
                let half = bytes.count / 2
                guard var file = try? MemoryFile(name: "test"), Self.append(bytes[..<half], to: &file) else {
                    throw .exhausted(cause: "no file")
                }
                arriving.begin(
                    ArrivingSource.Start(file: file.reader, length: bytes.count, cacheDirectives: directives), count: half)
                await gate?.pass()
                guard Self.append(bytes[half...], to: &file), let sealed = try? file.seal() else {
                    throw .exhausted(cause: "no file")
                }
                return .fetched(
                    FetchedSource(
                        bytes: sealed, count: bytes.count, sha256: SHA256.hash(bytes),
                        validators: SourceValidators(etag: etag), cacheDirectives: directives, duration: .milliseconds(1)))
            }
        }

        private static func append(_ bytes: ArraySlice<UInt8>, to file: inout MemoryFile) -> Bool {
            (try? bytes.withUnsafeBytes { try file.append($0) }) != nil
        }

        /// Writes the first byte of the source, as often as a rendition has bytes.
        func convert(
            _ source: SourceFile, _ rendition: Rendition, _ flight: Flight, _ cache: Cache, _ gate: AsyncGate?
        ) async throws(RenditionError) -> Converter.Conversion {
            flight.markQueued()
            let (error, count, frames, breaksOff) = state.withLock { state in
                state.conversions.append(rendition.canonicalText)
                return (state.conversionError, state.convertedCount, state.frames, state.breaksOff)
            }
            await gate?.pass()
            if let error { throw error }
            guard let first = try? source.bytes.read(1, at: 0), let file = try? await cache.stage(expecting: 0),
                (try? DescriptorIO.write([UInt8](repeating: first[0], count: count), to: file.descriptor.number, at: 0)) != nil
            else { throw .overloaded(cause: "no file") }
            let result = TranscodeResult(
                sourceWidth: 100, sourceHeight: 100, width: 100, height: 100, frames: frames, samples: 1, duration: 1,
                loopCount: nil, isBrokenOff: breaksOff, bytes: count)
            return Converter.Conversion(
                file: file, report: WorkerReport(result: result, queued: .zero, ran: .zero, cpuMicroseconds: 0, peakBytes: 0))
        }
    }
}

extension OriginRules {
    /// Rules with bounds of lifetimes, in seconds.
    static func lasting(_ bounds: ClosedRange<Int64> = 60...30 * 86_400, isObeyed: Bool = true) -> OriginRules {
        var rules = OriginRules()
        (rules.obeyOrigin, rules.minFreshFor, rules.maxFreshFor) = (isObeyed, bounds.lowerBound, bounds.upperBound)
        return rules
    }
}
