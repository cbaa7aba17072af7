internal import Media
internal import Sandbox
internal import Synchronization

/// The progress of a miss.
package struct MissProgress: Sendable, Equatable {
    /// The step that takes time now.
    package enum Stage: String, Sendable {
        /// The source is being fetched, or another node is producing the rendition.
        case fetching
        /// The source is in memory, and no worker is free.
        case waiting
        /// A worker is converting the source.
        case encoding
    }

    package var stage = Stage.fetching
    /// Bytes of the source that have arrived.
    package var fetchedBytes = 0
    /// Bytes of the source; nil if they are not known yet.
    package var totalBytes: Int?
    /// Frames of the source that are encoded.
    package var framesDone = 0
    /// Frames of the source; nil before the worker has reported any.
    package var framesTotal: Int?
    /// The place in the queue for a worker, from 1 for the next; nil if the miss does not wait in it.
    package var queuePosition: Int?

    package init() {}
}

/// Collects the progress that the steps of a flight report. Any thread.
final class FlightProgress: Sendable {
    /// The bytes of a source that have arrived, and its size if the origin declared it.
    typealias Arrived = (count: Int, length: Int?)

    private struct State {
        var arrived: (@Sendable () -> Arrived?)?
        /// The last result of ``arrived``, which returns nil once the fetch has failed.
        var lastArrived: Arrived?
        /// Bytes of the source, once they are in memory.
        var loaded: Int?
        var position: (@Sendable () -> Int?)?
    }

    private let state = Mutex(State())

    /// Records that the source is being fetched.
    ///
    /// - Parameter arrived: Returns the bytes received so far; nil before the first bytes.
    func fetches(_ arrived: @escaping @Sendable () -> Arrived?) {
        state.withLock { $0.arrived = arrived }
    }

    /// Records that the source is in memory.
    func loaded(bytes: Int) {
        state.withLock { state in
            state.loaded = bytes
            state.arrived = nil
        }
    }

    /// Records that the job waits for a worker.
    ///
    /// - Parameter position: Returns the place in the queue; nil once the job has left it.
    func waits(_ position: @escaping @Sendable () -> Int?) {
        state.withLock { $0.position = position }
    }

    func current(_ turn: JobTurn) -> MissProgress {
        let state = state.withLock { $0 }
        var progress = MissProgress()
        guard let loaded = state.loaded else {
            if let arrived = latest(state) { (progress.fetchedBytes, progress.totalBytes) = arrived }
            return progress
        }
        (progress.fetchedBytes, progress.totalBytes) = (loaded, loaded)
        if turn.hasBegun {
            progress.stage = .encoding
            if let frames = turn.progress { (progress.framesDone, progress.framesTotal) = (frames.done, frames.total) }
        } else {
            progress.stage = .waiting
            progress.queuePosition = state.position?()
        }
        return progress
    }

    /// The bytes received so far, or until the fetch failed.
    private func latest(_ known: State) -> Arrived? {
        guard let arrived = known.arrived?() else { return known.lastArrived }
        state.withLock { $0.lastArrived = arrived }
        return arrived
    }
}

/// Shows the progress of the miss that a request causes or joins. Any thread.
package final class MissWatch: Sendable {
    private let flight = Mutex<Flight?>(nil)

    package init() {}

    /// The current progress; that of a fetch without bytes until the request has joined a flight.
    package var progress: MissProgress { flight.withLock { $0 }?.currentProgress ?? MissProgress() }

    func follow(_ new: Flight) {
        flight.withLock { $0 = new }
    }
}
