import Ledger
import Testing

@testable import Cluster

@Suite("What a node does before it follows the stream") struct CatchUpTests {
    struct Case: Sendable {
        let what: String
        let node: CatchUp.Node
        let stream: CatchUp.Stream
        var reset: CatchUp.Start?
        var gap: MissedPurges?
        var isReported = false
        var readAfter: StreamID?
        var objectsAfter: StreamID?
    }

    /// Seconds since 1970.
    private static func at(_ seconds: UInt64, _ sequence: UInt64 = 0) -> StreamID { StreamID(seconds * 1000, sequence) }

    private static func node(
        _ stream: String, at id: StreamID, inMemory position: StreamID = .zero, followed: String? = nil, lost: [StreamID] = []
    ) -> CatchUp.Node {
        CatchUp.Node(
            saved: PurgePosition(stream: stream, id: id), followed: followed, position: position, lost: lost)
    }

    private static func stream(_ first: StreamID, _ last: StreamID, isWhole: Bool = false) -> CatchUp.Stream {
        CatchUp.Stream(identity: "s", first: first, last: last, isWhole: isWhole)
    }

    static let cases = [
        Case(
            what: "never followed: revalidation, recent purges, and those of objects of the last hour",
            node: CatchUp.Node(), stream: stream(StreamID(0, 1), at(10_000), isWhole: true),
            reset: .init(reach: .zero, position: at(9940)), gap: .possible, objectsAfter: at(6400)),
        Case(
            what: "never followed, a trimmed stream: nothing is known from before its first entry",
            node: CatchUp.Node(), stream: stream(at(9000), at(10_000)),
            reset: .init(reach: at(9000), position: at(9940)), gap: .possible, objectsAfter: at(6400)),
        Case(
            what: "never followed, a young stream: no time before 1970",
            node: CatchUp.Node(), stream: stream(StreamID(0, 1), StreamID(0, 1), isWhole: true),
            reset: .init(reach: .zero, position: .zero), gap: .possible, objectsAfter: .zero),
        Case(
            what: "a restart within a whole stream: from the position on",
            node: node("s", at: at(5000)), stream: stream(StreamID(0, 1), at(10_000), isWhole: true),
            reset: .init(reach: .zero, position: at(5000))),
        Case(
            what: "a restart within a trimmed stream that reaches back: all its purges are known",
            node: node("s", at: at(5000, 7)), stream: stream(at(5000, 7), at(10_000)),
            reset: .init(reach: at(5000, 7), position: at(5000, 7))),
        Case(
            what: "trimmed beyond the position: a gap, and all purges of objects",
            node: node("s", at: at(5000, 6)), stream: stream(at(5000, 7), at(10_000)),
            reset: .init(reach: at(5000, 7), position: at(9940)), gap: .certain, isReported: true, objectsAfter: .zero),
        Case(
            what: "another stream: a gap, whatever the position is",
            node: node("t", at: at(20_000), inMemory: at(20_000), followed: "t"),
            stream: stream(StreamID(0, 1), at(10_000), isWhole: true),
            reset: .init(reach: .zero, position: at(9940)), gap: .possible, isReported: true, objectsAfter: .zero),
        Case(
            what: "a new connection to the same stream: on from the position in memory",
            node: node("s", at: at(5000), inMemory: at(6000), followed: "s"), stream: stream(at(1000), at(10_000)),
            readAfter: at(6000)),
        Case(
            what: "a server that has lost its latest entries: an hour before its last one again",
            node: node("s", at: at(9000), inMemory: at(9500), followed: "s"),
            stream: stream(StreamID(0, 1), at(8000), isWhole: true), reset: .init(reach: .zero, position: at(4400))),
        Case(
            what: "a restart, and the saved position is after the last entry",
            node: node("s", at: at(9000)), stream: stream(StreamID(0, 1), at(8000), isWhole: true),
            reset: .init(reach: .zero, position: at(4400))),
        Case(
            what: "an entry of this node was lost, and others followed: an hour before it again",
            node: node("s", at: at(9000), inMemory: at(9000), followed: "s", lost: [at(7000), at(6060)]),
            stream: stream(StreamID(0, 1), at(10_000), isWhole: true), reset: .init(reach: .zero, position: at(2400))),
        Case(
            what: "a lost entry and a gap: the gap decides",
            node: node("t", at: at(9000), inMemory: at(9000), followed: "t", lost: [at(7000)]),
            stream: stream(at(9500), at(10_000)), reset: .init(reach: at(9500), position: at(9940)), gap: .possible,
            isReported: true, objectsAfter: .zero),
    ]

    @Test(arguments: cases) func thePlanFollowsFromTheNodeAndTheStream(_ example: Case) {
        let plan = CatchUp(of: example.node, to: example.stream)
        #expect(plan.start == example.reset, "\(example.what)")
        #expect(plan.gap == example.gap, "\(example.what)")
        #expect(plan.isReported == example.isReported, "\(example.what)")
        #expect(plan.readAfter == example.readAfter, "\(example.what)")
        #expect(plan.objectsAfter == example.objectsAfter, "\(example.what)")
    }
}
