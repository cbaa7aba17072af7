import Fetch
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Renditions

@Suite("Renditions in the background come after those of visitors, and are bounded", .timeLimit(.minutes(10)))
struct BackgroundRenditionTests {
    private let gif: [UInt8] = Array("GIF89a of a certain size".utf8)

    /// Counts outcomes.
    private final class Outcomes: Sendable {
        private let outcomes = Mutex<[BackgroundRenditions.Outcome]>([])
        var all: [BackgroundRenditions.Outcome] { outcomes.withLock { $0 } }
        func append(_ outcome: BackgroundRenditions.Outcome) { outcomes.withLock { $0.append(outcome) } }
    }

    private func background(
        _ world: PipelineFixture, _ outcomes: Outcomes, concurrency: Int = 1, waiting: Int = 10
    ) -> BackgroundRenditions {
        let background = BackgroundRenditions(concurrency: concurrency, waiting: waiting) { outcomes.append($0) }
        background.start { world.pipeline }
        return background
    }

    /// Adds a poster as the rendition that nobody has asked for, because every build can make one.
    private func add(_ path: String, to background: BackgroundRenditions, _ world: PipelineFixture) throws {
        background.add(try world.request(path, .png), after: try world.request(path, .mp4))
    }

    @Test func theRenditionOfVisitorsIsProducedFirst() async throws {
        let outcomes = Outcomes()
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif))
            let background = background(world, outcomes)
            try add("/a.gif", to: background, world)
            try await waitUntil("the rendition") { outcomes.all == [.made] }
            #expect(world.conversions == ["mp4", "png"] && background.waiting == 0)
            #expect(try await world.find("/a.gif", .png).provenance == .hit)
            // Both are stored by now.
            try add("/a.gif", to: background, world)
            try await waitUntil("the second entry") { outcomes.all == [.made, .hit] }
            #expect(world.conversions == ["mp4", "png"])
        }
    }

    @Test func anEntryJoinsTheFlightOfAVisitor() async throws {
        let (outcomes, gate) = (Outcomes(), AsyncGate())
        try await PipelineFixture.run(gates: .init(conversion: gate)) { world async throws in
            world.answer("/a.gif", .content(gif))
            let visitor = Task { try await world.find("/a.gif") }
            try await waitUntil("the conversion for the visitor") { gate.count == 1 }
            let background = background(world, outcomes)
            try add("/a.gif", to: background, world)
            try await waitUntil("the entry to join") { world.renditionState.flights.waiterCount == 2 }
            #expect(world.conversions == ["mp4"])
            gate.open()
            #expect(try await visitor.value.provenance == .stored)
            try await waitUntil("the rendition") { outcomes.all == [.made] }
            #expect(world.conversions == ["mp4", "png"])
        }
    }

    @Test func entriesAreCoalescedAndDroppedBeyondTheBound() async throws {
        let (outcomes, gate) = (Outcomes(), AsyncGate())
        try await PipelineFixture.run(gates: .init(conversion: gate)) { world async throws in
            for name in "abcd" { world.answer("/\(name).gif", .content(gif + [UInt8(name.asciiValue ?? 0)])) }
            let background = background(world, outcomes, waiting: 2)
            for path in ["/a.gif", "/a.gif", "/b.gif", "/b.gif", "/c.gif", "/d.gif"] {
                try add(path, to: background, world)
            }
            // One is in progress, two wait.
            #expect(background.waiting == 2 && outcomes.all == [.dropped])
            #expect(background.contains(try world.request("/a.gif", .png)))
            #expect(!background.contains(try world.request("/d.gif", .png)))
            gate.open()
            try await waitUntil("all entries") { outcomes.all.count == 4 }
            #expect(outcomes.all == [.dropped, .made, .made, .made])
            #expect(world.conversions == ["mp4", "png", "mp4", "png", "mp4", "png"])
            // A dropped one may be added again.
            try add("/d.gif", to: background, world)
            try await waitUntil("the dropped entry") { outcomes.all.count == 5 }
        }
    }

    @Test func clientsTakeTurnsAndLeaveRoomForOthers() async throws {
        let (outcomes, gate) = (Outcomes(), AsyncGate())
        try await PipelineFixture.run(gates: .init(conversion: gate)) { world async throws in
            let background = background(world, outcomes, waiting: 8)
            func add(_ name: Character, for client: String) throws -> Bool {
                world.answer("/\(name).gif", .content(gif + [UInt8(name.asciiValue ?? 0)]))
                var request = try world.request("/\(name).gif", .png)
                request.client = ClientNetwork(try #require(IPAddress(client)))
                return background.add(request)
            }
            #expect(try add("a", for: "192.0.2.1"))
            try await waitUntil("the first conversion") { gate.count == 1 }
            let added = try "bcdefghi".filter { try add($0, for: "192.0.2.1") }
            #expect(added == "bcdefg" && outcomes.all == [.dropped, .dropped])
            #expect(try add("x", for: "192.0.2.2"))
            #expect(!background.hasRoom(for: try world.request("/y.gif", .png), within: 7))
            gate.open()
            try await waitUntil("all entries") { background.waiting == 0 && outcomes.all.count == 10 }
            // The client with one entry does not wait for all entries of the other.
            #expect(world.fetches.map(\.path) == ["/a.gif", "/b.gif", "/x.gif"] + "cdefg".map { "/\($0).gif" })
        }
    }

    @Test func noMoreEntriesThanAllowedAreInProgress() async throws {
        let (outcomes, gate) = (Outcomes(), AsyncGate())
        try await PipelineFixture.run(gates: .init(conversion: gate)) { world async throws in
            for name in "abcde" { world.answer("/\(name).gif", .content(gif + [UInt8(name.asciiValue ?? 0)])) }
            let background = background(world, outcomes, concurrency: 2)
            for name in "abcde" { try add("/\(name).gif", to: background, world) }
            try await waitUntil("two conversions") { gate.count == 2 }
            #expect(background.waiting == 3)
            gate.open()
            try await waitUntil("all entries") { outcomes.all.count == 5 }
            #expect(outcomes.all.allSatisfy { $0 == .made })
        }
    }

    @Test func aFailureIsCountedAndTheNextEntryFollows() async throws {
        let outcomes = Outcomes()
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .failure(.notFound))
            world.answer("/b.gif", .content(gif))
            let background = background(world, outcomes)
            try add("/a.gif", to: background, world)
            try add("/b.gif", to: background, world)
            try await waitUntil("both entries") { outcomes.all == [.failed, .made] }
            #expect(world.pipeline.isKnownToFail(try world.request("/a.gif", .png)))
            #expect(!world.pipeline.isKnownToFail(try world.request("/b.gif", .png)))
        }
    }

    @Test func theyWaitAtThePriorityOfPrewarming() async throws {
        let (outcomes, gate) = (Outcomes(), AsyncGate())
        // Background work gets half of the slots.
        try await PipelineFixture.run(jobs: 2, gates: .init(conversion: gate)) { world async throws in
            for name in "abc" { world.answer("/\(name).gif", .content(gif + [UInt8(name.asciiValue ?? 0)])) }
            let background = background(world, outcomes, concurrency: 2)
            try add("/a.gif", to: background, world)
            try await waitUntil("the first conversion") { gate.count == 1 }
            try add("/b.gif", to: background, world)
            try await waitUntil("the refusal of the second one") { outcomes.all == [.failed] }
            // A visitor is admitted beside it.
            let visitor = Task { try await world.find("/c.gif") }
            try await waitUntil("the conversion for the visitor") { gate.count == 2 }
            gate.open()
            _ = try await visitor.value
            try await waitUntil("the first entry") { outcomes.all == [.failed, .made] }
        }
    }

    @Test func aRequestForWhatIsStoredAddsNothing() async throws {
        let outcomes = Outcomes()
        try await PipelineFixture.run { world async throws in
            let background = background(world, outcomes)
            let request = RenditionRequest(Rendition(format: .png), of: try world.url("/a.gif"), isOnlyFromStore: true)
            #expect(!background.add(request) && !background.contains(request))
        }
    }

    @Test func nothingIsAddedBeforeTheStartOrAfterTheEnd() async throws {
        let (outcomes, gate) = (Outcomes(), AsyncGate())
        try await PipelineFixture.run(gates: .init(conversion: gate)) { world async throws in
            for name in "ab" { world.answer("/\(name).gif", .content(gif)) }
            let background = BackgroundRenditions(concurrency: 1) { outcomes.append($0) }
            try add("/a.gif", to: background, world)
            #expect(background.waiting == 0)
            background.start { world.pipeline }
            try add("/a.gif", to: background, world)
            try add("/b.gif", to: background, world)
            try await waitUntil("the first conversion") { gate.count == 1 }
            background.stop()
            #expect(background.waiting == 0)
            try add("/b.gif", to: background, world)
            gate.open()
            try await waitUntil("the end of the flights") { world.renditionState.flights.count == 0 }
            #expect(!world.conversions.contains("png") && outcomes.all.isEmpty)
        }
    }
}
