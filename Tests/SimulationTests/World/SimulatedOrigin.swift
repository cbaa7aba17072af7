import Digests
import Synchronization
import SystemIO

@testable import Fetch
@testable import Renditions

/// The origin of all sources. It takes its time, breaks off, answers with errors, and its sources change.
final class SimulatedOrigin: Sendable {
    private let scheduler: SimulatedScheduler
    private let ledger: Ledger
    /// The probability that a fetch fails.
    private let failureRate: Double

    init(_ scheduler: SimulatedScheduler, _ ledger: Ledger, failureRate: Double) {
        self.scheduler = scheduler
        self.ledger = ledger
        self.failureRate = failureRate
    }

    /// - Parameter hasCrashed: Whether the process that fetches has crashed.
    func fetch(
        _ url: SourceURL, _ validators: SourceValidators, _ arriving: ArrivingSource, hasCrashed: @Sendable () -> Bool
    ) async throws(FetchError) -> FetchOutcome {
        guard let number = Ledger.urls.firstIndex(of: url.canonical) else { throw .notFound }
        try await takeTime(hasCrashed)
        let contents = ledger.contents(Ledger.group(number))
        // Some versions of a source cannot be fetched.
        if contents.version % 9 == 5 { throw .failed(.protocolViolation(cause: "#\(contents.version)")) }
        if contents.version % 23 == 7 { throw .notFound }
        let etag = contents.version % 3 == 0 ? nil : "\"\(contents.version)\""
        let directives = directives(contents)
        if let etag, validators.etag == etag {
            try await takeTime(hasCrashed)
            return .notModified(UnmodifiedSource(validators: validators, cacheDirectives: directives, duration: .seconds(1)))
        }
        let bytes = contents.bytes
        guard var file = try? MemoryFile(name: "simulated"), Self.append(bytes[..<16], to: &file) else {
            throw .exhausted(cause: "no memory file")
        }
        arriving.begin(ArrivingSource.Start(file: file.reader, length: bytes.count, cacheDirectives: directives), count: 16)
        try await takeTime(hasCrashed)
        guard Self.append(bytes[16...], to: &file), let sealed = try? file.seal() else {
            throw .exhausted(cause: "no memory file")
        }
        return .fetched(
            FetchedSource(
                bytes: sealed, count: bytes.count, sha256: SHA256.hash(bytes),
                validators: SourceValidators(etag: etag), cacheDirectives: directives, duration: .seconds(1)))
    }

    private func directives(_ contents: SourceContents) -> CacheDirectives {
        switch contents.version % 11 {
        case 3: CacheDirectives("no-store")
        case 4: CacheDirectives("no-cache")
        case 6: CacheDirectives("max-age=\(Limits.longest)")
        default: CacheDirectives()
        }
    }

    private func takeTime(_ hasCrashed: () -> Bool) async throws(FetchError) {
        let isSlow = scheduler.chance(0.05)
        await scheduler.wait(for: .milliseconds(scheduler.number(0...(isSlow ? 30_000 : 1500))))
        if hasCrashed() { throw .closed }
        if Task.isCancelled { throw .cancelled }
        guard scheduler.chance(failureRate) else { return }
        throw scheduler.element(of: [
            .failed(.cutShort(cause: "simulated")), .timeout(.total, limit: .seconds(3)), .unreachable(cause: "simulated"),
            .failed(.status(503, retryAfter: .seconds(3))),
        ])
    }

    private static func append(_ bytes: ArraySlice<UInt8>, to file: inout MemoryFile) -> Bool {
        (try? bytes.withUnsafeBytes { try file.append($0) }) != nil
    }
}
