import Foundation
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Web

@Suite("Statuses are shared with other nodes, not faster than the interval", .timeLimit(.minutes(10)))
struct StatusSharingTests {
    /// What nodes share, in memory.
    private final class Book: SharedStatusBook {
        private struct State {
            var documents: [String: [UInt8]] = [:]
            var left: Set<String> = []
            var writes = 0
            var lifetimes: [Duration] = []
            var isAvailable = true
            /// Writes and reads that failed.
            var failures = 0
            var reads = 0
            /// Reads that found no status.
            var misses = 0
            var removals = 0

            mutating func check() throws {
                guard !isAvailable else { return }
                failures += 1
                throw CancellationError()
            }
        }

        private let state = Mutex(State())

        var failures: Int { state.withLock { $0.failures } }
        var reads: Int { state.withLock { $0.reads } }
        var misses: Int { state.withLock { $0.misses } }
        var removals: Int { state.withLock { $0.removals } }
        var writes: Int { state.withLock { $0.writes } }
        var lifetimes: [Duration] { state.withLock { $0.lifetimes } }
        var isEmpty: Bool { state.withLock { $0.documents.isEmpty } }

        func put(_ id: UInt128, _ document: String) {
            state.withLock { $0.documents[Hex.encode(id)] = Array("\(document)\n".utf8) }
        }

        func setAvailable(_ isAvailable: Bool) { state.withLock { $0.isAvailable = isAvailable } }

        /// The text of the only status.
        var document: String? {
            state.withLock { state in
                state.documents.count == 1 ? state.documents.values.first.map { String(decoding: $0, as: UTF8.self) } : nil
            }
        }

        func write(_ id: String, _ document: [UInt8], for lifetime: Duration) async throws -> Bool {
            try state.withLock { state in
                try state.check()
                state.documents[id] = document
                state.writes += 1
                state.lifetimes.append(lifetime)
                return state.left.contains(id)
            }
        }

        func read(_ id: String) async throws -> [UInt8]? {
            try state.withLock { state in
                try state.check()
                state.reads += 1
                if state.documents[id] == nil { state.misses += 1 }
                return state.documents[id]
            }
        }

        func cancel(_ id: String) async throws -> Bool {
            try state.withLock { state in
                try state.check()
                state.left.insert(id)
                return state.documents.removeValue(forKey: id) != nil
            }
        }

        func remove(_ id: String) async {
            state.withLock { state in
                state.removals += 1
                state.documents[id] = nil
            }
        }
    }

    private static let id = "/status/0000000000000000000000000000002a"
    private static let accept = ["Accept: text/event-stream"]

    private func run(
        _ book: Book, sharing: Duration = .milliseconds(10),
        timings configure: (inout StatusRegistry.Timings) -> Void = { _ in }, _ body: (WebFixture) async throws -> Void
    ) async throws {
        try await WebFixture.run(["/a.gif": { _ in .ok(GIFBuilder.animation(frames: 3)) }]) {
            $0.sharedStatuses = book
            $0.timings.sharing = sharing
            configure(&$0.timings)
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

    @Test func aStatusThatCannotBeReadIsNotSaidToBeUnknown() async throws {
        let book = Book()
        book.put(42, #"{"state":"encoding"}"#)
        book.setAvailable(false)
        try await run(book) { web in
            for (method, headers) in [("GET", []), ("GET", Self.accept), ("DELETE", [])] as [(String, [String])] {
                let answer = try await web.request(method, Self.id, headers: headers)
                #expect(answer.status == 503 && answer.code == "overloaded" && answer["retry-after"] == "1", "\(method)")
            }
            book.setAvailable(true)
            #expect(try await web.request("GET", Self.id).status == 200)
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
            await book.remove(Hex.encode(UInt128(42)))
            #expect(try await answer.text == "data: {\"state\":\"fetching\"}\n\n")
        }
    }

    @Test func theEventsOfAnotherNodeGoOnAfterAnOutage() async throws {
        let book = Book()
        try await run(book, timings: { $0.heartbeat = .milliseconds(1) }) { web in
            book.put(42, #"{"state":"encoding"}"#)
            async let answer = web.request("GET", Self.id, headers: Self.accept)
            try await waitUntil("the stream") { web.statuses.sharedStreams == 1 }
            book.setAvailable(false)
            try await waitUntil("failed reads") { book.failures >= 3 }
            book.put(42, #"{"state":"done"}"#)
            book.setAvailable(true)
            let text = try await answer.text
            #expect(text.contains(":\n\n"))
            #expect(
                text.replacingOccurrences(of: ":\n\n", with: "")
                    == "data: {\"state\":\"encoding\"}\n\nid: end\ndata: {\"state\":\"done\"}\n\n")
        }
    }

    @Test func theEventsGoOnIfTheStatusHadExpiredDuringTheOutage() async throws {
        let book = Book()
        // So long that the test returns the status before the stream gives it up.
        try await run(book, sharing: .milliseconds(500)) { web in
            book.put(42, #"{"state":"encoding"}"#)
            async let answer = web.request("GET", Self.id, headers: Self.accept)
            try await waitUntil("the stream") { web.statuses.sharedStreams == 1 }
            book.setAvailable(false)
            try await waitUntil("a failed read") { book.failures >= 1 }
            await book.remove(Hex.encode(UInt128(42)))
            book.setAvailable(true)
            try await waitUntil("a read without a status") { book.misses >= 1 }
            book.put(42, #"{"state":"done"}"#)
            let text = try await answer.text
            #expect(text.hasSuffix("id: end\ndata: {\"state\":\"done\"}\n\n"))
        }
    }

    @Test func theEventsEndIfTheStatusDoesNotReturnAfterAnOutage() async throws {
        let book = Book()
        try await run(book) { web in
            book.put(42, #"{"state":"encoding"}"#)
            async let answer = web.request("GET", Self.id, headers: Self.accept)
            try await waitUntil("the stream") { web.statuses.sharedStreams == 1 }
            book.setAvailable(false)
            try await waitUntil("a failed read") { book.failures >= 1 }
            await book.remove(Hex.encode(UInt128(42)))
            book.setAvailable(true)
            #expect(try await answer.text == "data: {\"state\":\"encoding\"}\n\n")
        }
    }

    @Test func theEventsEndIfTheOutageOutlastsAStatus() async throws {
        let book = Book()
        try await run(book, timings: { $0.lifetime = .milliseconds(100) }) { web in
            book.put(42, #"{"state":"encoding"}"#)
            async let answer = web.request("GET", Self.id, headers: Self.accept)
            try await waitUntil("the first read") { book.reads >= 1 }
            book.setAvailable(false)
            let text = try await answer.text
            #expect(!text.contains("id: end"))
        }
    }

    @Test func aStopEndsTheEventsOfAnotherNode() async throws {
        let book = Book()
        book.put(42, #"{"state":"encoding"}"#)
        // So long that only the stop ends the stream.
        try await run(book, sharing: .seconds(3600)) { web in
            let port = try #require(web.port)
            let text = try await onThread {
                var client = try RawHTTPClient(port: port)
                try client.send("GET", Self.id, headers: Self.accept + ["Connection: close"])
                _ = try client.readHead()
                var text = ""
                while !text.contains("\n\n") { text += String(decoding: try client.read(1), as: UTF8.self) }
                web.statuses.close()
                return text + String(decoding: client.readToEnd().bytes, as: UTF8.self)
            }
            #expect(text.contains(#"data: {"state":"encoding"}"#) && text.hasSuffix("0\r\n\r\n"))
            // A browser reconnects after it.
            #expect(!text.contains("id: end"))
            #expect(try await web.request("GET", Self.id, headers: Self.accept).code == "draining")
            #expect(try await web.request("GET", Self.id).status == 200)
        }
    }

    @Test func aStopEndsTheStatusOnOtherNodes() async throws {
        let (book, gate) = (Book(), try LoopbackGate())
        // So long that only the stop causes another write.
        try await run(book, sharing: .seconds(3600)) { web in
            web.origin.on("/slow.gif") { _ in LoopbackAnswer.ok([]).after(gate) }
            let accepted = try await web.request("GET", web.target("mp4", "/slow.gif"), headers: ["Prefer: respond-async"])
            #expect(accepted.status == 202)
            web.statuses.close()
            try await waitUntil("the final status") { book.document?.contains(#""code":"draining""#) == true }
            #expect(book.document?.contains(#""state":"failed""#) == true && book.lifetimes.last == .seconds(600))
            gate.open()
        }
    }

    @Test func theFinalStatusIsWrittenAfterAnOutage() async throws {
        let (book, gate) = (Book(), try LoopbackGate())
        try await run(book) { web in
            web.origin.on("/gated.gif") { _ in LoopbackAnswer.ok(GIFBuilder.animation(frames: 3)).after(gate) }
            let accepted = try await web.request("GET", web.target("mp4", "/gated.gif"), headers: ["Prefer: respond-async"])
            let path = try #require(accepted["location"])
            #expect(!book.isEmpty)
            book.setAvailable(false)
            gate.open()
            try await waitUntil("the end of the work") {
                try await web.request("GET", path).json()["state"] as? String == "done"
            }
            let failures = book.failures
            try await waitUntil("repeated writes") { book.failures >= failures + 2 }
            book.setAvailable(true)
            try await waitUntil("the final status") { book.document?.contains(#""state":"done""#) == true }
            // It expires when it would have without the outage.
            let lifetime = try #require(book.lifetimes.last)
            #expect(lifetime > .zero && lifetime < .seconds(600))
        }
    }

    @Test func aFinalStatusThatCannotBeWrittenIsGivenUpWhenItExpires() async throws {
        let book = Book()
        book.setAvailable(false)
        try await run(book, timings: { $0.lifetime = .milliseconds(100) }) { web in
            let accepted = try await web.request("GET", web.target("mp4", "/a.gif"), headers: ["Prefer: respond-async"])
            #expect(accepted.status == 202)
            try await waitUntil("the end of the writes") { book.removals == 1 }
            #expect(book.failures >= 1 && book.writes == 0)
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
            #expect(try await book.cancel(Hex.encode(id)))
            try await waitUntil("the end of the request") { web.statuses.counts.kept == 0 }
            try await waitUntil("an empty book") { book.isEmpty }
            gate.open()
        }
    }
}
