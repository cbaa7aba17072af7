import Cache
import Renditions
import Synchronization
import TestSupport
import Testing

@testable import Web

@Suite("Objects that other nodes may have are looked up within the limits of a client", .timeLimit(.minutes(10)))
struct SharedObjectTests {
    /// A tier without objects, which counts the questions.
    private final class EmptyTier: SharedTier {
        private let count = Mutex(0)

        var questions: Int { count.withLock { $0 } }

        func load(_ id: ObjectID, fileExtension: String, into file: StagedFile) async -> SharedLookUp {
            count.withLock { $0 += 1 }
            return .absent
        }

        func save(_ rendition: CachedRendition) async -> Bool { true }

        func remove(_ id: ObjectID) async -> Bool { true }

        func awaitRemoval(of id: ObjectID) async {}
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
}
