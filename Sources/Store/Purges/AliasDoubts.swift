internal import Synchronization

/// The sequences up to which aliases have to be confirmed by their origins, because purges were or may have been missed.
///
/// Any thread; the lock is held for a few operations.
final class AliasDoubts: Sendable {
    private struct Sequences {
        /// Recorded in the ledger.
        var certain: Int64
        var possible: Int64
        /// Not recorded; see ``Cache/holdAliases(_:)`` and ``Cache/doubtAliases()``.
        var held: Int64 = 0
        var alone: Int64 = 0
        /// Uploads up to here count no longer. Not recorded, because the ledger has none of them once it can be changed.
        var uploads: Int64 = 0
        /// The numbers of doubts that have no sequence yet.
        var announced = (certain: 0, possible: 0, uploads: 0)

        func doubt(of sequence: Int64) -> MissedPurges? {
            let isStored = sequence < .max
            if sequence <= max(certain, held) || isStored && announced.certain > 0 { return .certain }
            return sequence <= max(possible, alone) || isStored && announced.possible > 0 ? .possible : nil
        }

        mutating func announce(_ doubt: MissedPurges, includingUploads: Bool, _ count: Int) {
            if doubt == .certain { announced.certain += count } else { announced.possible += count }
            if includingUploads { announced.uploads += count }
        }

        var latest: Int64 {
            announced.certain + announced.possible > 0 ? .max : max(certain, possible, held, alone)
        }

        /// See ``AliasDoubts/missed``.
        var missed: (aliases: Int64, uploads: Int64) {
            (announced.certain > 0 ? .max : certain, announced.uploads > 0 ? .max : uploads)
        }
    }

    private let sequences: Mutex<Sequences>
    /// Aliases up to this sequence are doubted.
    private let doubted: Atomic<Int64>
    /// Objects up to this sequence are held, or have to be confirmed.
    private let held: Atomic<Int64>

    init(certain: Int64, possible: Int64) {
        let recorded = Sequences(certain: certain, possible: possible)
        sequences = Mutex(recorded)
        doubted = Atomic(recorded.latest)
        held = Atomic(certain)
    }

    /// Returns why the origin has to confirm an alias; nil if it need not.
    ///
    /// - Parameter sequence: 0 for an alias that is not stored.
    @inline(__always)
    func doubt(ofAlias sequence: Int64) -> MissedPurges? {
        // An alias that is not stored is newer than every row.
        let sequence = sequence > 0 ? sequence : .max
        guard sequence <= doubted.load(ordering: .relaxed) else { return nil }
        return sequences.withLock { $0.doubt(of: sequence) }
    }

    /// The sequences up to which an alias, or an upload, does not confirm its object, because purges were missed since.
    var missed: (aliases: Int64, uploads: Int64) { sequences.withLock(\.missed) }

    /// Whether ``hold(_:through:)`` holds an object, or it has to be confirmed.
    @inline(__always)
    func isHeld(_ object: Int64) -> Bool {
        object <= held.load(ordering: .relaxed) && object > 0
    }

    /// Doubts everything stored until ``doubt(_:includingUploads:through:)`` gives the doubt its place in the order. Its caller
    /// need not wait for the lock that decides on the order, which may be held while a disk syncs.
    func announce(_ doubt: MissedPurges, includingUploads: Bool) {
        change { $0.announce(doubt, includingUploads: includingUploads, 1) }
    }

    /// Replaces an announced doubt.
    func doubt(_ doubt: MissedPurges, includingUploads: Bool, through sequence: Int64) {
        change { sequences in
            sequences.announce(doubt, includingUploads: includingUploads, -1)
            if doubt == .certain { sequences.certain = sequence } else { sequences.possible = sequence }
            if includingUploads { sequences.uploads = sequence }
        }
    }

    /// See ``Cache/holdAliases(_:)``. Aliases stored from now on are doubted, too.
    func hold(_ doubt: MissedPurges, through sequence: Int64) {
        change { sequences in
            if doubt == .certain { sequences.held = sequence }
            sequences.alone = .max
        }
    }

    /// See ``Cache/doubtAliases()``. Has no effect if the aliases were confirmed since.
    func doubtAlone(through sequence: Int64) {
        change { if $0.alone > 0 { $0.alone = sequence } }
    }

    /// See ``Cache/confirmAliases()``.
    func confirm() {
        change { ($0.held, $0.alone) = (0, 0) }
    }

    private func change(_ body: (inout Sequences) -> Void) {
        sequences.withLock { sequences in
            body(&sequences)
            doubted.store(sequences.latest, ordering: .relaxed)
            held.store(max(sequences.held, sequences.missed.aliases), ordering: .relaxed)
        }
    }
}

/// Why stored renditions are doubted: what a node knows about the purges that others made while it was away.
package enum MissedPurges: Sendable, Equatable {
    /// Purges were missed and can no longer be learned. The origin has to confirm an alias before it is used.
    case certain
    /// Purges may have been missed: the stream of purges differs from the one followed before, or is the first one. The origin
    /// is asked first, and the alias is used if the origin does not answer.
    case possible
}
