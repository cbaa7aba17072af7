internal import Glibc
internal import Sandbox
internal import Store
internal import Synchronization
internal import SystemIO

/// Admission control for misses. It is asked before a fetch, so that work that cannot be done is refused at once and costs
/// nothing.
///
/// Bounds jobs (fetching, waiting for a worker, or running) and bytes in memory: sources, renditions that the disk cannot hold,
/// and buffers for clients that follow a source. A source counts from the start of its fetch, at the largest allowed size until
/// its own is known. A job that waits for its fetch holds a slot but no bytes. A job takes as many slots as its expected cost
/// in multiples of a conversion to H.264. A job that costs more than a limit allows is admitted alone. A job without a
/// conversion takes no slot: a visitor of a page with many new images gets the originals of those whose conversion is refused.
///
/// | limited | slots | bytes | fetches at once |
/// | --- | --- | --- | --- |
/// | background work | half | half | half |
/// | one host, while its sources are being fetched | three quarters | half | 8, by the fetcher |
/// | one client | three times as many as are free | three times as many as are free | three times as many as are free |
/// | one client, at one host | three quarters of the host's | three quarters of the host's | three quarters of the host's |
///
/// So a host that does not answer leaves room for others, and there is always room for another client, even at such a host.
///
/// Clients may read a source, or a rendition in memory, long after its job has ended. Data that only clients hold may occupy a
/// quarter of the bytes. When a job needs memory, the excess is released, oldest first, so that slow clients do not keep jobs
/// out.
///
/// Any thread; the lock is held for a few additions.
package final class Admission: Sendable {
    /// The client, origin and kind of work to which a reservation is charged.
    struct Owner: Sendable {
        /// The client whose request started the job; nil if it is unknown, or if no client waits.
        var client: ClientNetwork?
        var isBackground = false
        var origin: Origin?

        /// Nil if either is unknown.
        fileprivate var clientOfOrigin: ClientOfOrigin? {
            guard let origin, let client else { return nil }
            return ClientOfOrigin(origin: origin, client: client)
        }

        /// The share of an origin ends with its fetch, which the slot records.
        var withoutOrigin: Owner { Owner(client: client, isBackground: isBackground) }
    }

    fileprivate struct ClientOfOrigin: Hashable {
        let origin: Origin
        let client: ClientNetwork
    }

    /// The used part of a resource.
    private struct Usage {
        var total = 0
        var background = 0
        /// By origin, for fetches that have not ended.
        var origins: [Origin: Int] = [:]
        /// By origin and client, as far as they count in ``origins``.
        var clientsOfOrigins: [ClientOfOrigin: Int] = [:]
        var clients: [ClientNetwork: Int] = [:]

        mutating func add(_ count: Int, _ owner: Owner) {
            total += count
            if owner.isBackground { background += count }
            addToOrigin(count, owner)
            if let client = owner.client { Self.add(count, to: &clients, client) }
        }

        mutating func endFetch(_ count: Int, _ owner: Owner) { addToOrigin(-count, owner) }

        private mutating func addToOrigin(_ count: Int, _ owner: Owner) {
            if let origin = owner.origin { Self.add(count, to: &origins, origin) }
            if let client = owner.clientOfOrigin { Self.add(count, to: &clientsOfOrigins, client) }
        }

        private static func add<Key>(_ count: Int, to counts: inout [Key: Int], _ key: Key) {
            let sum = counts[key, default: 0] + count
            counts[key] = sum > 0 ? sum : nil
        }

        /// Whether `count` fits into the shares of its owner. Alone, it always fits, so that no limit excludes it permanently.
        ///
        /// - Parameters:
        ///   - limit: The capacity of the resource.
        ///   - perOrigin: The share of one origin.
        ///   - perClientOfOrigin: The share of one client at one origin.
        ///   - sharedFrom: The capacity up to which clients have no shares: reserving a part for others would leave it unused.
        func hasShare(
            _ count: Int, _ owner: Owner, of limit: Int, perOrigin: Int, perClientOfOrigin: Int, sharedFrom: Int = 0
        ) -> Bool {
            if owner.isBackground, !fits(count, beside: background, in: max(1, limit / 2)) { return false }
            if let origin = owner.origin, !fits(count, beside: origins[origin] ?? 0, in: perOrigin) { return false }
            if let client = owner.clientOfOrigin,
                !fits(count, beside: clientsOfOrigins[client] ?? 0, in: perClientOfOrigin)
            {
                return false
            }
            guard let client = owner.client, limit > sharedFrom else { return true }
            return fits(count, beside: clients[client] ?? 0, in: 3 * max(0, limit - total))
        }
    }

    private struct State {
        var jobs = Usage()
        var bytes = Usage()
        var fetches = Usage()
        /// Bytes that fetches in progress have reserved and mostly do not need.
        var fetchBytes = 0
        /// The sources that only readers hold, numbered in the order in which their jobs ended.
        var read: [Int: ReadSource] = [:]
        var lastNumber = 0
        var limits: Limits

        /// Whether a source would have room once the sources that are being fetched have arrived.
        func mayHaveRoom(for count: Int) -> Bool {
            let bytesOfReaders = read.values.reduce(0) { $0 + $1.bytes }
            let held = bytes.total - fetchBytes
            let released = max(0, bytesOfReaders - limits.bytesOfReaders)
            return held - released + count <= limits.bytes || held == bytesOfReaders
        }

        /// Makes room for a source. A source of any size is admitted if readers alone hold all others.
        ///
        /// - Returns: The sources to release, which no longer count; nil, without effect, if there is no room.
        mutating func makeRoom(for count: Int, _ owner: Owner) -> [ReadSource]? {
            guard
                bytes.hasShare(
                    count, owner, of: limits.bytes, perOrigin: limits.bytesPerOrigin,
                    perClientOfOrigin: limits.bytesPerClientOfOrigin)
            else { return nil }
            var room = limits.bytes - bytes.total
            guard room < count else {
                bytes.add(count, owner)
                return []
            }
            var bytesOfReaders = read.values.reduce(0) { $0 + $1.bytes }
            let isAlone = bytes.total == bytesOfReaders
            var released: [Int] = []
            for (number, source) in read.sorted(by: { $0.key < $1.key })
            where room < count && bytesOfReaders > limits.bytesOfReaders {
                released.append(number)
                room += source.bytes
                bytesOfReaders -= source.bytes
            }
            guard room >= count || isAlone else { return nil }
            let sources = released.compactMap { read.removeValue(forKey: $0) }
            bytes.add(-sources.reduce(0) { $0 + $1.bytes }, Owner())
            bytes.add(count, owner)
            return sources
        }
    }

    /// A source that only readers hold.
    private struct ReadSource: Sendable {
        let bytes: Int
        let release: @Sendable () -> Void
    }

    private struct Limits {
        let jobs: Int
        let bytes: Int
        let fetches: Int
        let fetchesPerHost: Int

        /// Below this number, reserving slots for other clients or origins would leave them unused.
        static let smallestShare = 8

        /// The share that readers keep even when jobs are waiting for memory.
        var bytesOfReaders: Int { bytes / 4 }
        var jobsPerOrigin: Int { max(Self.smallestShare, Self.threeQuarters(of: jobs)) }
        var jobsPerClientOfOrigin: Int { max(Self.smallestShare, Self.threeQuarters(of: jobsPerOrigin)) }
        var bytesPerOrigin: Int { bytes / 2 }
        var bytesPerClientOfOrigin: Int { Self.threeQuarters(of: bytesPerOrigin) }
        var fetchesPerClientOfOrigin: Int { Self.threeQuarters(of: fetchesPerHost) }

        private static func threeQuarters(of count: Int) -> Int { count - count / 4 }
    }

    /// The host of a fetch. Ports are not distinguished: one host may answer on all of them.
    typealias Origin = String

    private let state: Mutex<State>

    /// - Parameters:
    ///   - jobs: The number of slots: running jobs and queued ones.
    ///   - bytes: Bytes of sources in memory. A single source is always admitted, whatever its size.
    ///   - fetchesPerHost: The fetches that the fetcher runs at once at one host and port.
    package init(jobs: Int, bytes: Int, fetches: Int = .max / 4, fetchesPerHost: Int = .max / 4) {
        state = Mutex(
            State(limits: Limits(jobs: jobs, bytes: bytes, fetches: fetches, fetchesPerHost: fetchesPerHost)))
    }

    /// Changes the limits. Admitted work goes on; nothing more is admitted until the new limits allow it.
    func setLimits(jobs: Int, bytes: Int, fetches: Int = .max / 4, fetchesPerHost: Int = .max / 4) {
        state.withLock {
            $0.limits = Limits(jobs: jobs, bytes: bytes, fetches: fetches, fetchesPerHost: fetchesPerHost)
        }
    }

    /// Takes a slot, which is returned when its last reference is released.
    ///
    /// - Parameters:
    ///   - origin: The origin of the fetch; nil for an upload.
    ///   - bytes: The largest size that the source may have. It is reserved at once for an upload, and by
    ///     ``AdmissionSlot/beginFetch(for:)`` for a fetch.
    ///   - cost: The slots that the job takes; see ``Rendition/cost``.
    ///   - client: The client that waits for the job; nil if it is unknown, or if no client waits.
    /// - Throws: ``RenditionError/overloaded(cause:)`` if a limit is reached.
    func admit(
        _ origin: Origin?, bytes: Int, cost: Int = 1, urgency: Urgency, client: ClientNetwork? = nil
    ) throws(RenditionError) -> AdmissionSlot {
        let isBackground = urgency.isBackground
        let owner = Owner(client: isBackground ? nil : client, isBackground: isBackground, origin: origin)
        let released = state.withLock { state -> [ReadSource]? in
            let limits = state.limits
            let hasSlots =
                fits(cost, beside: state.jobs.total, in: limits.jobs)
                && state.jobs.hasShare(
                    cost, owner, of: limits.jobs, perOrigin: limits.jobsPerOrigin,
                    perClientOfOrigin: limits.jobsPerClientOfOrigin, sharedFrom: Limits.smallestShare)
            guard cost == 0 || hasSlots else { return nil }
            let released = origin == nil ? state.makeRoom(for: bytes, owner) : state.mayHaveRoom(for: bytes) ? [] : nil
            if released != nil { state.jobs.add(cost, owner) }
            return released
        }
        guard let released else { throw .overloaded(cause: nil) }
        for source in released { source.release() }
        return AdmissionSlot(self, owner, bytes: bytes, cost: cost)
    }

    /// Reserves the memory of a fetch that begins now; returns false, without effect, if the fetch has to wait.
    func beginFetch(bytes: Int, _ owner: Owner) -> Bool {
        let released = state.withLock { state -> [ReadSource]? in
            let limits = state.limits
            guard
                state.fetches.hasShare(
                    1, owner, of: limits.fetches, perOrigin: .max, perClientOfOrigin: limits.fetchesPerClientOfOrigin),
                let released = state.makeRoom(for: bytes, owner)
            else { return nil }
            state.fetches.add(1, owner)
            state.fetchBytes += bytes
            return released
        }
        for source in released ?? [] { source.release() }
        return released != nil
    }

    /// Records the end of a fetch that ``beginFetch(bytes:_:)`` has admitted. Its bytes stay reserved.
    func endFetch(bytes: Int, _ owner: Owner) {
        state.withLock { state in
            state.fetches.add(-1, owner)
            state.fetchBytes -= bytes
            state.bytes.endFetch(bytes, owner)
        }
    }

    /// Reserves memory until the last reference to the result is released.
    ///
    /// - Parameter client: The client that needs the memory; nil if it is unknown, or if several clients may need it.
    /// - Throws: ``RenditionError/overloaded(cause:)`` if the limit is reached.
    func reserve(bytes: Int, for client: ClientNetwork? = nil) throws(RenditionError) -> AdmittedMemory {
        let owner = Owner(client: client)
        guard let released = state.withLock({ $0.makeRoom(for: bytes, owner) }) else {
            throw .overloaded(cause: "transcode.queue_bytes is used up")
        }
        for source in released { source.release() }
        return AdmittedMemory(self, bytes: bytes, owner)
    }

    /// Accounts for a rendition in memory until its last reader has ended. Has no effect if the file is on disk. If a job needs
    /// the memory, the file is truncated, which ends its readers.
    ///
    /// - Throws: ``RenditionError/overloaded(cause:)`` if there is no room; the caller then releases the rendition.
    func account(for rendition: CachedRendition) throws(RenditionError) {
        guard let writable = rendition.object.memory else { return }
        let memory = try reserve(bytes: Int(rendition.length))
        if writable === rendition.descriptor {
            // The descriptor will hold the memory, so the memory must not hold the descriptor.
            memory.addReaders { [weak writable] in if let writable { ftruncate(writable.number, 0) } }
        } else {
            // The rendition's own descriptor is open for reading only.
            memory.addReaders { ftruncate(writable.number, 0) }
        }
        memory.endJob()
        rendition.descriptor.hold(memory)
    }

    /// Whether a slot is free.
    var hasCapacity: Bool { state.withLock { $0.jobs.total < $0.limits.jobs } }

    /// Slots taken and bytes accounted for.
    var load: (jobs: Int, bytes: Int) { state.withLock { ($0.jobs.total, $0.bytes.total) } }

    /// Records that a job no longer counts towards its origin's share.
    func jobLeavesOrigin(cost: Int, _ owner: Owner) {
        state.withLock { $0.jobs.endFetch(cost, owner) }
    }

    /// Returns the slots of a job that no longer counts towards its origin's share.
    func releaseJob(cost: Int, _ owner: Owner) {
        state.withLock { $0.jobs.add(-cost, owner) }
    }

    /// Adds to the accounted bytes, or subtracts. The bytes already exist, so no limit applies.
    func change(bytes: Int, _ owner: Owner) {
        if bytes != 0 { state.withLock { $0.bytes.add(bytes, owner) } }
    }

    /// Records that only readers hold a source, and returns its number.
    ///
    /// - Parameters:
    ///   - owner: The bytes no longer count towards its shares.
    ///   - release: Ends the readers. Called at most once, and not after ``readersGotJob(_:_:)`` or ``readersEnded(_:)``.
    func leaveToReaders(bytes: Int, _ owner: Owner, release: @escaping @Sendable () -> Void) -> Int {
        state.withLock { state in
            state.bytes.add(-bytes, owner)
            state.bytes.add(bytes, Owner())
            state.lastNumber += 1
            state.read[state.lastNumber] = ReadSource(bytes: bytes, release: release)
            return state.lastNumber
        }
    }

    /// Records that a job uses a source that only readers held, and returns its bytes; nil if it has been released.
    func readersGotJob(_ number: Int, _ owner: Owner) -> Int? {
        state.withLock { state in
            guard let bytes = state.read.removeValue(forKey: number)?.bytes else { return nil }
            state.bytes.add(-bytes, Owner())
            state.bytes.add(bytes, owner)
            return bytes
        }
    }

    func readersEnded(_ number: Int) {
        // The closure is released after the lock.
        let source = state.withLock { state in
            let source = state.read.removeValue(forKey: number)
            state.bytes.add(-(source?.bytes ?? 0), Owner())
            return source
        }
        withExtendedLifetime(source) {}
    }
}

/// Whether a cost fits beside what is taken. Alone, it always fits, so that no limit excludes it permanently.
private func fits(_ cost: Int, beside taken: Int, in limit: Int) -> Bool {
    taken + cost <= limit || (taken == 0 && limit > 0)
}
