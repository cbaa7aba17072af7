import Renditions
import Store
import Synchronization
import TestSupport
import Testing

@testable import Web

@Suite("Objects that other nodes may have are looked up within the limits of a client", .timeLimit(.minutes(10)))
struct SharedObjectTests {
    /// A tier without objects, which counts the questions.
    private final class EmptyTier: SharedTier {
        private let count = Mutex(0)
        private let answer: SharedLookUp
        /// What each answer waits for.
        private let gate: AsyncGate?

        init(answering answer: SharedLookUp = .absent, gate: AsyncGate? = nil) {
            self.answer = answer
            self.gate = gate
        }

        var questions: Int { count.withLock { $0 } }

        func load(_ id: ObjectID, fileExtension: String, into file: StagedFile, isOnlySource: Bool) async -> SharedLookUp {
            count.withLock { $0 += 1 }
            await gate?.pass()
            return answer
        }

        func save(_ rendition: CachedRendition) async -> Bool { true }
    }

    @Test func eachUnknownIdCountsAsAMiss() async throws {
        let tier = EmptyTier()
        try await WebFixture.run([:]) { settings in
            settings.tier = tier
            settings.policy.rateLimit = RateLimit(perMinute: 1, burst: 2)
        } _: { web async throws in
            for (digit, status) in [("1", 404), ("2", 404), ("3", 429), ("4", 429)] {
                let response = try await web.request("GET", "/object/\(String(repeating: digit, count: 64)).mp4")
                #expect(response.status == status, "\(digit)")
            }
            #expect(tier.questions == 2)
        }
    }

    @Test func clientsOfOneObjectShareOneLookUp() async throws {
        let gate = AsyncGate()
        let tier = EmptyTier(gate: gate)
        try await WebFixture.run([:], { $0.tier = tier }) { web async throws in
            let path = "/object/\(String(repeating: "1", count: 64)).mp4"
            async let first = web.request("GET", path)
            async let second = web.request("GET", path)
            try await waitUntil("both requests to wait") { web.objectWaiters == 2 }
            try await waitUntil("the lookup") { tier.questions == 1 }
            gate.open()
            #expect(try await first.status == 404)
            #expect(try await second.status == 404)
            // An answer is not kept.
            #expect(try await web.request("GET", path).status == 404)
            #expect(tier.questions == 2)
        }
    }

    @Test func aStoreThatCannotTellIsADocumentedProblem() async throws {
        try await WebFixture.run([:], { $0.tier = EmptyTier(answering: .unavailable) }) { web async throws in
            let response = try await web.request("GET", "/object/\(String(repeating: "1", count: 64)).mp4")
            #expect(response.status == 503 && response.code == "overloaded")
            let operation = try #require(APIOperation.table(RenditionPresets()).first { $0.id == "get_object" })
            #expect(operation.statuses.contains(503))
        }
    }
}
