import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Web

@Suite("Statuses are shared with other nodes, not faster than the interval", .timeLimit(.minutes(3)))
struct StatusSharingTests {
    /// What nodes share, in memory.
    private final class Book: SharedStatusBook {
        private struct State {
            var documents: [UInt128: [UInt8]] = [:]
            var left: Set<UInt128> = []
            var writes = 0
            var lifetimes: [Duration] = []
        }

        private let state = Mutex(State())

        var writes: Int { state.withLock { $0.writes } }
        var lifetimes: [Duration] { state.withLock { $0.lifetimes } }
        var isEmpty: Bool { state.withLock { $0.documents.isEmpty } }

        func put(_ id: UInt128, _ document: String) {
            state.withLock { $0.documents[id] = Array("\(document)\n".utf8) }
        }

        func write(_ id: UInt128, _ document: [UInt8], for lifetime: Duration) async -> Bool {
            state.withLock { state in
                state.documents[id] = document
                state.writes += 1
                state.lifetimes.append(lifetime)
                return state.left.contains(id)
            }
        }

        func read(_ id: UInt128) async -> [UInt8]? { state.withLock { $0.documents[id] } }

        func leave(_ id: UInt128) async -> Bool {
            state.withLock { state in
                state.left.insert(id)
                return state.documents.removeValue(forKey: id) != nil
            }
        }

        func remove(_ id: UInt128) async { state.withLock { _ = $0.documents.removeValue(forKey: id) } }
    }

    private static let id = "/status/0000000000000000000000000000002a"

    private func run(_ book: Book, sharing: Duration = .milliseconds(10), _ body: (WebFixture) async throws -> Void)
        async throws
    {
        try await WebFixture.run(["/a.gif": { _ in .ok(GIFBuilder.animation(frames: 3)) }]) {
            $0.sharedStatuses = book
            $0.timings.sharing = sharing
        } _: {
            try await body($0)
        }
    }

    @Test func aStatusOfAnotherNodeIsPassedOn() async throws {
        let book = Book()
        try await run(book) { web in
            #expect(try await web.request("GET", Self.id).status == 404)
            book.put(42, #"{"state":"encoding"}"#)
            let answer = try await web.request("GET", Self.id)
            #expect(answer.status == 200 && answer.text == "{\"state\":\"encoding\"}\n")
            #expect(answer["content-type"] == "application/json" && answer["cache-control"] == "no-store")
            #expect(try await web.request("HEAD", Self.id).status == 200)
            #expect(try await web.request("DELETE", Self.id).status == 204)
            #expect(try await web.request("DELETE", Self.id).status == 404)
            #expect(book.isEmpty)
        }
    }

    @Test func theEventsOfAnotherNodeEndWithItsWork() async throws {
        let book = Book()
        try await run(book) { web in
            book.put(42, #"{"state":"encoding"}"#)
            async let answer = web.request("GET", Self.id, headers: ["Accept: text/event-stream"])
            try await waitUntil("the stream") { web.statuses.sharedStreams == 1 }
            book.put(42, #"{"state":"done"}"#)
            let events = try await answer
            #expect(events.text == "data: {\"state\":\"encoding\"}\n\nid: end\ndata: {\"state\":\"done\"}\n\n")
            try await waitUntil("the end of the stream") { web.statuses.sharedStreams == 0 }
        }
    }

    @Test func theEventsOfAStatusThatDisappearsEnd() async throws {
        let book = Book()
        try await run(book) { web in
            book.put(42, #"{"state":"fetching"}"#)
            async let answer = web.request("GET", Self.id, headers: ["Accept: text/event-stream"])
            try await waitUntil("the stream") { web.statuses.sharedStreams == 1 }
            await book.remove(42)
            #expect(try await answer.text == "data: {\"state\":\"fetching\"}\n\n")
        }
    }

    @Test func aRequestIsSharedBeforeItIsAcceptedAndAtItsEnd() async throws {
        let book = Book()
        // So long that no write falls between the first and the last one.
        try await run(book, sharing: .seconds(3600)) { web in
            let accepted = try await web.request("GET", web.target("mp4", "/a.gif"), headers: ["Prefer: respond-async"])
            #expect(accepted.status == 202 && book.writes >= 1)
            try await waitUntil("the final status") { book.lifetimes.last == .seconds(600) }
            #expect(book.writes <= 2)
        }
    }

    @Test func aStatusThatIsRemovedAfterItsEndIsForgottenByEveryNode() async throws {
        let book = Book()
        try await run(book, sharing: .seconds(3600)) { web in
            let accepted = try await web.request("GET", web.target("mp4", "/a.gif"), headers: ["Prefer: respond-async"])
            let path = try #require(accepted["location"])
            try await waitUntil("the final status") { book.lifetimes.last == .seconds(600) }
            #expect(try await web.request("DELETE", path).status == 204)
            #expect(book.isEmpty)
            #expect(try await web.request("GET", path).status == 404)
        }
    }

    @Test func theEndOfARequestWhoseStatusWasRemovedIsNotShown() async throws {
        let book = Book()
        let registry = StatusRegistry(limit: 1)
        let request = try registry.open(nil)
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            request.start { _ in
                .done(url: "/x", nil)
            } ended: {
                registry.ended(request)
                continuation.resume()
            }
        }
        registry.remove(request)
        await StatusSharing(book: book, registry: registry).share(request)
        #expect(book.isEmpty && book.writes == 0)
    }

    @Test func aRequestThatWasLeftOnAnotherNodeEnds() async throws {
        let (book, gate) = (Book(), try LoopbackGate())
        try await run(book) { web in
            web.origin.on("/slow.gif") { _ in LoopbackAnswer.ok([]).after(gate) }
            let accepted = try await web.request("GET", web.target("mp4", "/slow.gif"), headers: ["Prefer: respond-async"])
            let path = try #require(accepted["location"])
            let id = try #require(UInt128(path.dropFirst("/status/".count), radix: 16))
            #expect(await book.leave(id))
            try await waitUntil("the end of the request") { web.statuses.counts.kept == 0 }
            try await waitUntil("an empty book") { book.isEmpty }
            gate.open()
        }
    }
}
