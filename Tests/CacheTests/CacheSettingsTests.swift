import SystemIO
import Testing

@testable import Cache

@Suite("Settings, errors and events of the cache say what is wrong") struct CacheSettingsTests {
    private static let ranges:
        [(
            name: String, inside: [@Sendable (inout CacheConfiguration) -> Void],
            outside: [@Sendable (inout CacheConfiguration) -> Void]
        )] = [
            ("directory", [{ $0.directory = "x" }], [{ $0.directory = "" }, { $0.directory = "a\u{0}b" }]),
            (
                "max_bytes", [{ $0.maxBytes = 1 << 20 }, { $0.maxBytes = 1 << 60 }],
                [{ $0.maxBytes = 1 << 20 - 1 }, { $0.maxBytes = -1 }, { $0.maxBytes = .max }]
            ),
            (
                "min_free_bytes", [{ $0.minFreeBytes = 0 }, { $0.minFreeBytes = 1 << 60 }],
                [{ $0.minFreeBytes = -1 }, { $0.minFreeBytes = .max }]
            ),
            (
                "fresh_for", [{ $0.freshFor = 0 }, { $0.freshFor = 315_360_000 }],
                [{ $0.freshFor = -1 }, { $0.freshFor = .max }]
            ),
            (
                "stale_for", [{ $0.staleFor = 0 }, { $0.staleFor = 315_360_000 }],
                [{ $0.staleFor = -1 }, { $0.staleFor = .max }]
            ),
            (
                "hot_entries", [{ $0.hotEntries = 1 }, { $0.hotEntries = 1_000_000 }],
                [{ $0.hotEntries = 0 }, { $0.hotEntries = 1_000_001 }]
            ),
            (
                "lookup_threads", [{ $0.lookupThreads = 1 }, { $0.lookupThreads = 64 }],
                [{ $0.lookupThreads = 0 }, { $0.lookupThreads = 65 }]
            ),
            (
                "publish_threads", [{ $0.publishThreads = 1 }, { $0.publishThreads = 64 }],
                [{ $0.publishThreads = 0 }, { $0.publishThreads = 65 }]
            ),
            (
                "queue_limit", [{ $0.queueLimit = 1 }, { $0.queueLimit = .max }],
                [{ $0.queueLimit = 0 }, { $0.queueLimit = .min }]
            ),
            (
                "scrub_bytes_per_second", [{ $0.scrubBytesPerSecond = 0 }, { $0.scrubBytesPerSecond = .max }],
                [{ $0.scrubBytesPerSecond = -1 }]
            ),
            (
                "housekeeping_interval", [{ $0.housekeepingInterval = 1 }, { $0.housekeepingInterval = 3_600_000 }],
                [{ $0.housekeepingInterval = 0 }, { $0.housekeepingInterval = 3_600_001 }]
            ),
        ]

    @Test func everySettingIsCheckedAtBothEndsOfItsRange() throws {
        try CacheConfiguration().validate()
        for (name, inside, outside) in Self.ranges {
            for change in inside {
                var configuration = CacheConfiguration()
                change(&configuration)
                #expect(throws: Never.self) { try configuration.validate() }
            }
            for change in outside {
                var configuration = CacheConfiguration()
                change(&configuration)
                let error = #expect(throws: CacheError.self) { try configuration.validate() }
                #expect(error?.description.hasPrefix("cache.\(name) must ") == true)
            }
        }
    }

    @Test func aWrongSettingCreatesNoDirectory() throws {
        let directory = try TemporaryDirectory()
        var configuration = CacheConfiguration.test(directory)
        configuration.directory += "/new"
        configuration.hotEntries = 0
        #expect(throws: CacheError.self) { try Cache(configuration: configuration) }
        #expect(directory.files("").isEmpty)
    }

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
