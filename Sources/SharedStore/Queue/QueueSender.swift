internal import Glibc
internal import Synchronization
internal import SystemIO

/// Sends the entries of a ``WriteBehindQueue``, some at once.
///
/// After a failure it pauses the entry, which may be the cause. It pauses itself as well if the store may be gone, or if no entry is
/// ready that has not failed. Deletions that the store refuses therefore delay other entries only by the pause of a sender. They are
/// repeated at the pace of these pauses, regardless of their number. While the queue is drained, only an outage pauses a sender.
final class QueueSender: Sendable {
    typealias Send = @Sendable (QueueEntry) async throws(StoreError) -> Void

    private let queue: WriteBehindQueue
    private let backoff: Backoff
    private let entryBackoff: Backoff
    private let send: Send
    private let tasks = Mutex<[Task<Void, Never>]>([])

    /// Starts sending. The owner must call ``stop()``.
    init(_ queue: WriteBehindQueue, concurrency: Int, backoff: Backoff, send: @escaping Send) {
        self.queue = queue
        self.backoff = backoff
        entryBackoff = Backoff(first: backoff.first, longest: backoff.longest * 30)
        self.send = send
        let started = (0..<concurrency).map { _ in Task { await self.run() } }
        tasks.withLock { $0 = started }
    }

    /// Cancels the writes under way, which stay in the queue. Returns at once.
    func stop() {
        for task in tasks.withLock({ $0 }) { task.cancel() }
    }

    private func run() async {
        var failures = 0
        while !Task.isCancelled, let entry = await queue.next() {
            do throws(StoreError) {
                try await send(entry)
                queue.finish(entry)
                failures = 0
            } catch {
                // A purge must reach the store, however long that takes.
                guard entry.change == .delete || Self.mayPassLater(error) else {
                    queue.discard(entry, error)
                    continue
                }
                let isOutage = error == .suspended || error.isOutage(of: entry.change == .delete ? .delete : .put)
                queue.putBack(entry, after: error == .suspended ? nil : entryBackoff, isOutage: isOutage)
                guard isOutage || queue.maySendersPause else { continue }
                failures += 1
                try? await Task.sleep(for: backoff.pause(after: failures))
            }
        }
    }

    /// Whether a put may succeed later: an outage ends, credentials can be replaced. Others fail each time.
    private static func mayPassLater(_ error: StoreError) -> Bool {
        switch error {
        case .file(let cause): [EMFILE, ENFILE, ENOMEM].contains(cause.code)
        case .rejected, .tooLarge, .damaged: false
        default: true
        }
    }
}
