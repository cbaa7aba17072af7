internal import Glibc
internal import Synchronization
internal import SystemIO

/// The numbers of the outbox, and the reports of puts that it drops. Any thread.
final class OutboxMeter: Sendable {
    struct Gauges: Sendable, Equatable {
        var entries = 0
        var bytes = 0
        /// Puts dropped since the start because there were too many, or because they could not be written to disk or never be
        /// sent.
        var dropped = 0
    }

    private struct State {
        var gauges = Gauges()
        var isDiskBroken = false
        var hasDiscarded = false
    }

    private let state = Mutex(State())
    private let report: @Sendable (StoreEvent) -> Void

    /// - Parameter report: See ``Outbox/init(_:_:holdsPuts:report:)``.
    init(report: @escaping @Sendable (StoreEvent) -> Void) {
        self.report = report
    }

    var gauges: Gauges { state.withLock(\.gauges) }

    /// Reads the numbers of entries and bytes. Blocks.
    func countEntries(_ ledger: Ledger) {
        guard let totals = try? ledger.read({ try OutboxTables($0).totals() }) else { return }
        state.withLock { state in
            state.gauges.entries = totals.puts + totals.deletions
            state.gauges.bytes = totals.bytes
        }
    }

    func countDropped(_ count: Int) {
        state.withLock { $0.gauges.dropped += count }
    }

    /// Notes that a put was written to disk.
    func noteWrite() {
        state.withLock { $0.isDiskBroken = false }
    }

    /// Notes a put that could not be written to disk, and reports the first one after one that could.
    func noteDrop(_ error: StoreError) {
        let isFirst = state.withLock { state in
            state.gauges.dropped += 1
            // A full outbox is no fault of the disk.
            guard error != .file(SystemError("outbox", code: ENOBUFS)) else { return false }
            defer { state.isDiskBroken = true }
            return !state.isDiskBroken
        }
        if isFirst { report(.queueFailed(error)) }
    }

    /// Notes a put that can never be sent, and reports the first one.
    func noteDiscard(_ error: StoreError) {
        let isFirst = state.withLock { state in
            state.gauges.dropped += 1
            defer { state.hasDiscarded = true }
            return !state.hasDiscarded
        }
        if isFirst { report(.discarded(error)) }
    }
}
