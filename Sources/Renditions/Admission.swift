internal import Cache
internal import Fetch
internal import Glibc
internal import Sandbox
internal import Synchronization
internal import SystemIO

/// Admission control for misses. It is asked before a fetch, so that work that cannot be done is refused at once and costs
/// nothing.
///
/// It bounds jobs (being fetched, waiting for a worker, or running) and bytes in memory: of sources, of renditions that the disk does
/// not take, and of buffers for clients that follow a source. A source that is still being fetched counts with the largest allowed size. The slots that a job takes are its expected cost in multiples of a
/// conversion to H.264. A job that costs more than a limit allows is admitted alone. Background work gets at most half of the slots.
/// One origin gets at most three quarters of them while its sources are being fetched, so that a slow origin does not block the others.
/// One client gets at most three times as many as are free, so that there is always a slot for another client.
///
/// Clients may read a source, or a rendition in memory, for long after its job has ended. What only clients hold may take a quarter of
/// the bytes. What goes beyond that is released, the oldest first, when a job needs the memory, so that slow clients do not keep jobs
/// out.
///
/// Any thread; the lock is held for a few additions.
package final class Admission: Sendable {
    private struct State {
        /// Slots taken.
        var jobs = 0
        /// Those of background work.
        var background = 0
        var bytes = 0
        /// Slots by the origin of a fetch.
        var fetching: [Origin: Int] = [:]
        /// Slots by the client whose request started the job.
        var clients: [ClientNetwork: Int] = [:]
        /// The sources that only readers hold, in the order of the ends of their jobs.
        var read: [Int: ReadSource] = [:]
        var lastNumber = 0
        var limits: Limits

        /// Makes room for a source. One source is always admitted, whatever its size, besides those that only readers hold.
        ///
        /// - Returns: Sources to release, which do not count any more; nil, without effect, if there is no room.
        mutating func makeRoom(for count: Int) -> [ReadSource]? {
            guard bytes + count > limits.bytes else {
                bytes += count
                return []
            }
            var bytesOfReaders = read.values.reduce(0) { $0 + $1.bytes }
            let isAlone = bytes == bytesOfReaders
            var released: [Int] = []
            var room = limits.bytes - bytes
            for (number, source) in read.sorted(by: { $0.key < $1.key })
            where room < count && bytesOfReaders > limits.bytesOfReaders {
                released.append(number)
                room += source.bytes
                bytesOfReaders -= source.bytes
            }
            guard room >= count || isAlone else { return nil }
            bytes = limits.bytes - room + count
            return released.compactMap { read.removeValue(forKey: $0) }
        }
    }

    /// A source that only readers hold.
    private struct ReadSource: Sendable {
        let bytes: Int
        /// Ends its readers.
        let release: @Sendable () -> Void
    }

    private struct Limits {
        let jobs: Int
        let bytes: Int

        /// Below this number, reserving slots for other origins would leave them unused.
        static let smallestShare = 8

        /// The share that readers keep even when jobs are waiting for memory.
        var bytesOfReaders: Int { bytes / 4 }
        var jobsInBackground: Int { max(1, jobs / 2) }
        var jobsPerOrigin: Int { max(Self.smallestShare, jobs - jobs / 4) }

        /// The slots of one client, its own included.
        ///
        /// - Parameter free: Those that no job has.
        func jobsPerClient(free: Int) -> Int { jobs <= Self.smallestShare ? jobs : 3 * max(0, free) }
    }

    /// The host and port of a fetch.
    struct Origin: Hashable, Sendable {
        let host: String
        let port: Int

        init(_ url: SourceURL) {
            host = url.host
            port = url.port
        }
    }

    private let state: Mutex<State>

    /// - Parameters:
    ///   - jobs: The number of slots: running jobs and queued ones.
    ///   - bytes: Bytes of sources in memory. A single source is always admitted, whatever its size.
    package init(jobs: Int, bytes: Int) {
        state = Mutex(State(limits: Limits(jobs: jobs, bytes: bytes)))
    }

    /// Changes the limits. Admitted work goes on; nothing more is admitted until the new limits allow it.
    func setLimits(jobs: Int, bytes: Int) {
        state.withLock { $0.limits = Limits(jobs: jobs, bytes: bytes) }
    }

    /// Takes a slot, which its holder has until it releases the last reference.
    ///
    /// - Parameters:
    ///   - origin: The origin of the fetch; nil for an upload.
    ///   - bytes: The largest size that the source may have.
    ///   - cost: The slots that the job takes; see ``Rendition/cost``.
    ///   - client: The client that waits for the job; nil if it is unknown, or if no client waits.
    /// - Throws: ``RenditionError/overloaded(cause:)`` if a limit is reached.
    func admit(
        _ origin: Origin?, bytes: Int, cost: Int = 1, urgency: Urgency, client: ClientNetwork? = nil
    ) throws(RenditionError) -> AdmissionSlot {
        let client = urgency.isBackground ? nil : client
        let released = state.withLock { state -> [ReadSource]? in
            let limits = state.limits
            guard Self.fits(cost, beside: state.jobs, in: limits.jobs) else { return nil }
            if urgency.isBackground, !Self.fits(cost, beside: state.background, in: limits.jobsInBackground) { return nil }
            if let origin, !Self.fits(cost, beside: state.fetching[origin, default: 0], in: limits.jobsPerOrigin) {
                return nil
            }
            if let client {
                let limit = limits.jobsPerClient(free: limits.jobs - state.jobs)
                guard Self.fits(cost, beside: state.clients[client] ?? 0, in: limit) else { return nil }
            }
            guard let released = state.makeRoom(for: bytes) else { return nil }
            state.jobs += cost
            if let client { state.clients[client, default: 0] += cost }
            if urgency.isBackground { state.background += cost }
            if let origin { state.fetching[origin, default: 0] += cost }
            return released
        }
        guard let released else { throw .overloaded(cause: nil) }
        for source in released { source.release() }
        return AdmissionSlot(self, origin, bytes: bytes, cost: cost, isBackground: urgency.isBackground, client: client)
    }

    /// Reserves memory until the last reference to the result is released.
    ///
    /// - Throws: ``RenditionError/overloaded(cause:)`` if the limit is reached.
    func reserve(bytes: Int) throws(RenditionError) -> AdmittedMemory {
        guard let released = state.withLock({ $0.makeRoom(for: bytes) }) else {
            throw .overloaded(cause: "transcode.queue_bytes is used up")
        }
        for source in released { source.release() }
        return AdmittedMemory(self, bytes: bytes)
    }

    /// Accounts for a rendition in memory until its last reader has ended. No effect on one with a file on disk.
    ///
    /// - Parameters:
    ///   - file: The file that was published as the rendition. It is emptied, which ends the readers, if a job needs the memory.
    /// - Throws: ``RenditionError/overloaded(cause:)`` if there is no room; the caller then releases the rendition.
    func account(for rendition: CachedRendition, in file: StagedFile) throws(RenditionError) {
        guard file.isInMemory else { return }
        let memory = try reserve(bytes: Int(rendition.length))
        // The rendition's own descriptor may be open for reading only.
        memory.addReaders { [writable = file.descriptor] in ftruncate(writable.number, 0) }
        memory.endJob()
        rendition.descriptor.hold(memory)
    }

    /// Whether a job has room among others. A job without others always has room, so that no limit excludes it permanently.
    private static func fits(_ cost: Int, beside taken: Int, in limit: Int) -> Bool {
        taken + cost <= limit || (taken == 0 && limit > 0)
    }

    /// Whether a slot is free.
    var hasCapacity: Bool { state.withLock { $0.jobs < $0.limits.jobs } }

    /// Slots taken and bytes accounted for.
    var load: (jobs: Int, bytes: Int) { state.withLock { ($0.jobs, $0.bytes) } }

    func fetchEnded(_ origin: Origin?, cost: Int) {
        state.withLock { state in
            guard let origin, let count = state.fetching[origin] else { return }
            state.fetching[origin] = count > cost ? count - cost : nil
        }
    }

    func releaseJob(cost: Int, isBackground: Bool, client: ClientNetwork?) {
        state.withLock { state in
            state.jobs -= cost
            if isBackground { state.background -= cost }
            if let client, let count = state.clients[client] { state.clients[client] = count > cost ? count - cost : nil }
        }
    }

    func release(bytes: Int) {
        state.withLock { $0.bytes -= bytes }
    }

    /// Records that only readers hold a source, and returns its number.
    ///
    /// - Parameter release: Ends the readers. Called at most once, and not after ``readersGotJob(_:)`` or ``readersEnded(_:)``.
    func leaveToReaders(bytes: Int, release: @escaping @Sendable () -> Void) -> Int {
        state.withLock { state in
            state.lastNumber += 1
            state.read[state.lastNumber] = ReadSource(bytes: bytes, release: release)
            return state.lastNumber
        }
    }

    /// Records that a job uses a source that only readers held, and returns its bytes; nil if it has been released.
    func readersGotJob(_ number: Int) -> Int? {
        state.withLock { $0.read.removeValue(forKey: number) }?.bytes
    }

    /// Records that the last reader of a source has ended.
    func readersEnded(_ number: Int) {
        // The closure is released after the lock.
        let source = state.withLock { state in
            let source = state.read.removeValue(forKey: number)
            state.bytes -= source?.bytes ?? 0
            return source
        }
        withExtendedLifetime(source) {}
    }
}
