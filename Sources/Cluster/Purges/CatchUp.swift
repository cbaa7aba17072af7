internal import Ledger

/// What a node has to do before it follows the stream of purges: a function of what the node remembers and of the stream.
struct CatchUp: Sendable, Equatable {
    struct Node: Sendable {
        var saved = PurgePosition()
        /// The stream in the memory of this process; nil before the first catch-up.
        var followed: String?
        /// The position in the memory of this process.
        var position = StreamID.zero
        /// The entries of this node that the stream has lost.
        var lost: [StreamID] = []
    }

    struct Stream: Sendable {
        var identity: String
        var first: StreamID
        var last: StreamID
        /// Whether it was never trimmed. Its first entry is its own beginning then.
        var isWhole: Bool
    }

    /// Where the memory of purges starts over; nil if it goes on.
    struct Start: Sendable, Equatable {
        /// All purges after this one will be known.
        var reach: StreamID
        /// All purges up to this one count as applied.
        var position: StreamID
    }

    let start: Start?
    /// Why every alias has to be revalidated; nil if all purges that were missed will be applied.
    let gap: MissedPurges?
    /// Whether the gap is worth a report. A node that has never followed a stream may have a cache from before, but has missed nothing.
    let isReported: Bool
    /// Entries after this one are read; nil for all.
    let readAfter: StreamID?
    /// Purges of objects after this one are applied although they are before the position, because a revalidation does not replace
    /// them. Nil if there are none.
    let objectsAfter: StreamID?

    /// Where everything is revalidated, only purges with callers that may still wait have to be applied.
    static let recentMilliseconds: UInt64 = 60_000
    /// An hour. A node that has never followed a stream applies purges of objects that are younger.
    /// After a server has lost entries, a node applies those again that are younger than this before its position.
    static let objectMilliseconds: UInt64 = 3_600_000

    init(of node: Node, to stream: Stream) {
        let isSame = node.saved.stream == stream.identity
        let reaches = isSame && (stream.isWhole || stream.first <= node.saved.id)
        // A server that restarts may lose the latest entries, and a replica that takes over may have others in their place.
        let hasChanged = !isSame || stream.last < max(node.saved.id, node.position) || !node.lost.isEmpty
        gap = reaches ? nil : isSame ? .certain : .possible
        isReported = !reaches && !node.saved.stream.isEmpty
        // A node that has followed a stream may have missed any of them.
        objectsAfter =
            if reaches {
                nil
            } else {
                node.saved.stream.isEmpty ? stream.last.earlier(by: Self.objectMilliseconds) : .zero
            }
        if reaches, !hasChanged, node.followed == stream.identity {
            start = nil
            readAfter = node.position
            return
        }
        readAfter = nil
        // Others may have been added since the first one that was lost. A purge that is applied twice leaves what is newer than it.
        let firstLost = node.lost.min().map { $0.earlier(by: Self.recentMilliseconds) }
        var known = min(node.saved.id, stream.last, firstLost ?? stream.last)
        // The clock of a server that has taken over may be behind: its entries in place of those that were lost may have ids
        // before the position.
        if hasChanged { known = known.earlier(by: Self.objectMilliseconds) }
        start = Start(
            reach: stream.isWhole ? .zero : stream.first,
            position: reaches ? known : stream.last.earlier(by: Self.recentMilliseconds))
    }
}
