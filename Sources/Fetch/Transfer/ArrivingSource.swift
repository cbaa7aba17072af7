internal import Synchronization
package import SystemIO

/// The bytes of a source while it is fetched, for readers that do not wait for the end of the fetch.
///
/// The transfer loop writes, and any number of readers follow at their own speed. Late readers also begin with the first byte.
/// A slow reader costs only the memory of the source. Thread-safe.
package final class ArrivingSource: Sendable {
    /// The facts about a source whose first bytes have been recognized.
    package struct Start: Sendable {
        /// The file with the bytes. It grows until the fetch ends; written bytes do not change.
        package let file: SharedDescriptor
        /// The size in bytes; nil if the origin did not declare it.
        package let length: Int?
        package let cacheDirectives: CacheDirectives

        package init(file: SharedDescriptor, length: Int?, cacheDirectives: CacheDirectives = CacheDirectives()) {
            self.file = file
            self.length = length
            self.cacheDirectives = cacheDirectives
        }
    }

    /// The progress of a fetch.
    package enum Progress: Sendable, Equatable {
        /// `count` bytes are in the file.
        case arrived(count: Int)
        /// All bytes are in the file.
        case complete(count: Int)
        /// No more bytes will arrive, and the source in the file is incomplete.
        case failed(count: Int)

        /// The number of bytes in the file.
        package var count: Int {
            switch self {
            case .arrived(let count), .complete(let count), .failed(let count): count
            }
        }
    }

    private struct State {
        var isClaimed = false
        var isWithheld = false
        var start: Start?
        var count = 0
        /// Whether the source is complete; nil before the end of the fetch.
        var isComplete: Bool?
        var retained: (any AnyObject & Sendable)?
        /// Decides whether the fetch may begin.
        var gate: (@Sendable () -> Bool)?
    }

    private let state = Mutex(State())
    private let waiters = Waiters()
    /// Whether the fetch also accepts still images that browsers show.
    package let acceptsImages: Bool

    package init(acceptsImages: Bool = false) {
        self.acceptsImages = acceptsImages
    }

    // MARK: The fetch

    /// Reserves this value for one fetch. Returns false if another fetch has reserved it.
    package func claim() -> Bool {
        state.withLock { state in
            defer { state.isClaimed = true }
            return !state.isClaimed
        }
    }

    /// Sets the gate that decides whether the fetch may begin, for example whether memory is available for the source.
    ///
    /// - Parameter gate: Called repeatedly, on any thread, until it returns true. Nil permits the fetch.
    package func setGate(_ gate: (@Sendable () -> Bool)?) {
        state.withLock { $0.gate = gate }
    }

    /// Whether the fetch may begin.
    package func mayBegin() -> Bool { state.withLock { $0.gate }?() ?? true }

    /// Records that the first bytes have arrived.
    package func begin(_ start: Start, count: Int) {
        update { state in
            state.start = start
            state.count = count
        }
    }

    /// Records that more bytes have arrived.
    package func advance(to count: Int) {
        update { $0.count = count }
    }

    /// Records that all bytes are in the file.
    package func complete(_ source: FetchedSource) {
        update { state in
            if state.start == nil {
                state.start = Start(file: source.bytes, length: source.count, cacheDirectives: source.cacheDirectives)
            }
            state.count = source.count
            state.isComplete = true
        }
    }

    /// Records that the fetch has ended without the whole source: it failed, or the source was not modified.
    package func fail() {
        update { $0.isComplete = false }
    }

    /// Makes readers wait until ``show()``, for example for a check of the whole source. Called before the first bytes arrive.
    package func withhold() {
        state.withLock { $0.isWithheld = true }
    }

    /// Makes the source available to readers.
    package func show() {
        update { $0.isWithheld = false }
    }

    /// Retains an object for as long as the bytes are in memory. Only the first object is retained.
    ///
    /// - Returns: The retained object; nil if the bytes are gone.
    package func retain(_ object: any AnyObject & Sendable) -> (any AnyObject & Sendable)? {
        state.withLock { state in
            guard state.isComplete != false else { return nil }
            if state.retained == nil { state.retained = object }
            return state.retained
        }
    }

    /// Releases the bytes at once. Readers that have not read all bytes get no more.
    package func cutOff() {
        let held = state.withLock { state in
            let held = (state.start, state.retained)
            state.start = nil
            state.retained = nil
            // Set in the same step, so that readers never see the source as complete.
            state.count = 0
            state.isComplete = false
            return held
        }
        waiters.notify()
        // Releases the objects outside the lock.
        withExtendedLifetime(held) {}
    }

    private func update(_ change: (inout State) -> Void) {
        state.withLock { change(&$0) }
        waiters.notify()
    }

    // MARK: Readers

    /// Whether readers can get bytes now, or possibly later.
    package var isUsable: Bool { state.withLock { $0.isComplete != false } }

    /// The facts about the source; nil before its first bytes arrive and after the fetch has failed.
    package var start: Start? { state.withLock { $0.isComplete == false ? nil : $0.start } }

    /// The facts about the source, like ``start``, but nil while the source is withheld.
    package var shown: Start? { state.withLock { $0.isComplete == false || $0.isWithheld ? nil : $0.start } }

    /// The file with the bytes, even if the fetch has failed; nil before the first bytes and after ``cutOff()``. A reader that
    /// holds the file keeps the bytes in memory.
    package var file: SharedDescriptor? { state.withLock { $0.start?.file } }

    /// The number of bytes in the file.
    package var count: Int { state.withLock { $0.count } }

    /// Waits until the first bytes are there and not withheld. Returns nil if the fetch fails or the task is cancelled first.
    package func awaitStart() async -> Start? {
        await waiters.wait {
            state.withLock { $0.isComplete == false || !$0.isWithheld && ($0.start != nil || $0.isComplete != nil) }
        }
        return shown
    }

    /// Waits until more than `known` bytes have arrived or no more will arrive.
    ///
    /// Returns the progress so far if the task is cancelled.
    package func progress(after known: Int) async -> Progress {
        await waiters.wait { state.withLock { $0.count > known || $0.isComplete != nil } }
        return state.withLock { state in
            switch state.isComplete {
            case true?: .complete(count: state.count)
            case false?: .failed(count: state.count)
            case nil: .arrived(count: state.count)
            }
        }
    }
}
