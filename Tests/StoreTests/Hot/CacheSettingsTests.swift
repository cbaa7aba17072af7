import SystemIO
import Testing

@testable import Store

@Suite("Errors and events of the cache say what is wrong") struct CacheSettingsTests {
    @Test func descriptionsNameTheCause() {
        let cause = SystemError("open", code: 13)
        let errors: [CacheError] = [
            .directoryInUse(path: "/p", holder: "process 7"), .directoryUnusable(path: "/p", cause: cause),
            .ledgerUnusable(path: "/p", cause: "x"), .stagingFailed(cause), .stagedFileUnusable(reason: "it is empty"),
            .purgeNotDurable(cause: "\(cause)"), .noThread, .closed,
        ]
        #expect(Set(errors.map(\.description)).count == errors.count)
        #expect(errors[0].description.contains("/p") && errors[0].description.contains("process 7"))
        #expect(errors[1].description.contains("open: Permission denied"))
        // Too little memory for a stack has the same code as too many threads.
        #expect(CacheError.noThread.description.contains("ulimit -v"))
        for reason in [
            UnstoredReason.unwanted, .purged, .tooLarge, .diskFull, .lowSpace, .readOnly, .directoryLost, .unavailable,
        ] {
            #expect(!reason.description.isEmpty)
        }
        #expect(UnstoredReason.failed(cause).description == cause.description)
    }

    @Test(
        arguments: [
            (28, UnstoredReason.diskFull), (122, .diskFull), (27, .diskFull), (30, .readOnly), (13, .readOnly), (1, .readOnly),
            (2, .directoryLost), (116, .directoryLost), (20, .directoryLost), (18, .directoryLost),
        ] as [(Int32, UnstoredReason)])
    func errorsOfTheDiskAreClassified(code: Int32, reason: UnstoredReason) {
        #expect(UnstoredReason(SystemError("write", code: code)) == reason)
        #expect(UnstoredReason(SystemError("write", code: 5)) == .failed(SystemError("write", code: 5)))
    }

    // MARK: Freshness

    @Test(
        arguments: [
            (0, Freshness.fresh(remaining: 100)), (99, .fresh(remaining: 1)), (100, .stale(age: 0)), (149, .stale(age: 49)),
            (150, .expired), (Int64.max - 1_000, .expired),
            // The clock was set back.
            (-1, .stale(age: 0)), (-150, .stale(age: 0)), (-151, .expired),
        ] as [(Int64, Freshness)])
    func freshnessFollowsTheAge(age: Int64, expected: Freshness) {
        #expect(Freshness(fetchedAt: 1_000, freshFor: 100, staleFor: 50, now: 1_000 + age) == expected)
    }

    @Test func freshnessOfExtremeTimesDoesNotOverflow() {
        for fetchedAt in [Int64.min, -ObjectRecord.maxNumber, 0, ObjectRecord.maxNumber, .max] {
            for now in [Int64.min, 0, .max] {
                for lifetime in [-ObjectRecord.maxNumber, 0, 315_360_000, ObjectRecord.maxNumber] {
                    _ = Freshness(fetchedAt: fetchedAt, freshFor: lifetime, staleFor: 315_360_000, now: now)
                }
            }
        }
        #expect(Freshness(fetchedAt: 0, freshFor: 0, staleFor: 0, now: 0) == .expired)
    }
}
