import Fetch
import Glibc
@testable import Media
import Synchronization
import SystemIO

@testable import Renditions
@testable import Sandbox
@testable import Store

/// The workers of one process. Each writes a rendition in two parts into the staged file, and may die, hang or refuse the source.
final class SimulatedWorkers: Sendable {
    private struct State {
        var free: Int
        var waiting: [Int: CheckedContinuation<Bool, Never>] = [:]
        var lastWaiter = 0
    }

    private let scheduler: SimulatedScheduler
    private let ledger: Ledger
    private let failureRate: Double
    private let count: Int
    private let state: Mutex<State>

    init(_ scheduler: SimulatedScheduler, _ ledger: Ledger, count: Int, failureRate: Double) {
        self.scheduler = scheduler
        self.ledger = ledger
        self.count = count
        self.failureRate = failureRate
        state = Mutex(State(free: count))
    }

    /// Whether no job runs or waits.
    var isIdle: Bool { state.withLock { $0.free == count && $0.waiting.isEmpty } }

    /// - Parameter hasCrashed: Whether the process has crashed.
    func convert(
        _ source: SourceFile, _ rendition: Rendition, _ flight: Flight, _ cache: Cache, hasCrashed: @Sendable () -> Bool
    ) async throws(RenditionError) -> Converter.Conversion {
        let number = ledger.nextConversion()
        flight.markQueued()
        guard await acquire() else { throw .conversionFailed(.cancelled, allowance: WorkerAllowance()) }
        defer { release() }
        flight.turn.begin()
        await takeTime()
        guard let bytes = try? source.bytes.readAll(), let contents = SourceContents(bytes) else {
            ledger.violation("a worker got bytes that are no source")
            throw .overloaded(cause: nil)
        }
        if contents.version % 13 == 8, rendition.options.quality == 30 { throw .refused(version: contents.version) }
        try await fail()
        let result = RenditionContents(source: contents, conversion: number, text: rendition.canonicalText).bytes
        let file = try await write(result, into: cache)
        if hasCrashed() { throw .conversionFailed(.killed(.simulated), allowance: WorkerAllowance()) }
        return Converter.Conversion(file: file, report: .simulated(bytes: result.count))
    }

    private func fail() async throws(RenditionError) {
        guard scheduler.chance(failureRate) else { return }
        let error: SandboxError = scheduler.element(of: [.crashed(.simulated), .killed(.simulated), .wallClockTimeout])
        if error == .wallClockTimeout { await scheduler.wait(for: .seconds(60)) }
        throw .conversionFailed(error, allowance: WorkerAllowance())
    }

    /// Writes a file of the cache or, if the disk is full, a file in memory, as `Converter` does.
    private func write(_ bytes: [UInt8], into cache: Cache) async throws(RenditionError) -> StagedFile {
        for isInMemory in [false, true] {
            do {
                let file =
                    isInMemory
                    ? try cache.stageInMemory(because: .diskFull) : try await cache.stage(expecting: Int64(bytes.count))
                try DescriptorIO.write(Array(bytes.prefix(bytes.count / 2)), to: file.number, at: 0)
                await takeTime()
                try DescriptorIO.write(Array(bytes.dropFirst(bytes.count / 2)), to: file.number, at: bytes.count / 2)
                return file
            } catch let error as SystemError where error.code == ENOSPC {
                continue
            } catch let error as SystemError {
                throw .conversionFailed(.unavailable(error), allowance: WorkerAllowance())
            } catch {
                throw .storageFailed(cause: "\(error)")
            }
        }
        throw .overloaded(cause: nil)
    }

    private func takeTime() async {
        await scheduler.wait(for: .milliseconds(scheduler.number(0...1000)))
    }

    // MARK: Places

    /// Waits for a free worker. Returns false if the task was cancelled before.
    private func acquire() async -> Bool {
        let waiter = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let decided: Bool? = state.withLock { state in
                    if Task.isCancelled { return false }
                    if state.free > 0 {
                        state.free -= 1
                        return true
                    }
                    state.waiting[waiter] = continuation
                    return nil
                }
                if let decided { continuation.resume(returning: decided) }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: waiter) }?.resume(returning: false)
        }
    }

    private func release() {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            guard let first = state.waiting.keys.min() else {
                state.free += 1
                return nil
            }
            return state.waiting.removeValue(forKey: first)
        }
        next?.resume(returning: true)
    }
}

extension RenditionError {
    /// A conversion that failed because of the version of its source.
    fileprivate static func refused(version: UInt32) -> RenditionError {
        .conversionFailed(
            .rejected(.tooLarge(.frames, value: Int(version), maximum: 0)), allowance: WorkerAllowance())
    }

    /// The version of the source that failed; nil if the failure is not that of a version.
    var version: UInt32? {
        switch self {
        case .remembered(let error, _): error.version
        case .conversionFailed(.rejected(.tooLarge(_, let version, _)), _): UInt32(version)
        case .fetchFailed(.failed(.protocolViolation(let cause))): UInt32(cause.dropFirst())
        default: nil
        }
    }
}

extension WorkerExit {
    fileprivate static let simulated = WorkerExit(code: nil, signal: SIGKILL, cpuMicroseconds: 0, peakBytes: 0)
}

extension WorkerReport {
    fileprivate static func simulated(bytes: Int) -> WorkerReport {
        WorkerReport(
            result: TranscodeResult(
                sourceWidth: 1, sourceHeight: 1, width: 2, height: 2, frames: 3, samples: 1, duration: 1, loopCount: nil,
                bytes: bytes),
            queued: .zero, ran: .zero, cpuMicroseconds: 0, peakBytes: 0)
    }
}
