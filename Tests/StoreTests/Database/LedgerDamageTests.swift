import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Store

@Suite("Overwritten pages of the ledger cost renditions, but no purge and no answer", .timeLimit(.minutes(10)))
struct LedgerDamageTests {
    enum Damage: CaseIterable { case noise, zeroes }

    private static let count = 120
    private static let pageSize = 4096
    private let origin: TemporaryDirectory

    init() throws {
        origin = try TemporaryDirectory(inMemory: true)
    }

    private func url(_ number: Int) -> String { "https://a/\(number)" }

    private func isPurged(_ number: Int) -> Bool { number.isMultiple(of: 10) }

    /// Stores renditions, purges some of them, and closes the cache.
    private func fill() async throws {
        let cache = try Cache.open(origin)
        defer { cache.close() }
        for number in 0..<Self.count { try await cache.put([UInt8(number), 1], url: url(number)) }
        for number in 0..<Self.count where isPurged(number) { _ = try await cache.purge(.url(url(number))) }
    }

    private func overwrite(_ pages: Range<Int>, with damage: Damage, in directory: TemporaryDirectory) throws {
        let file = try FileHandle(forUpdating: URL(filePath: directory.path + "/" + Ledger.fileName))
        defer { try? file.close() }
        try file.seek(toOffset: UInt64(pages.lowerBound * Self.pageSize))
        let count = pages.count * Self.pageSize
        try file.write(contentsOf: damage == .noise ? noise(count, seed: 11) : [UInt8](repeating: 0, count: count))
    }

    @Test(arguments: Damage.allCases, [false, true])
    func everyLookUpIsRightOrAMissAndNothingPurgedComesBack(_ damage: Damage, isServing: Bool) async throws {
        try await fill()
        let pages = try origin.contents(Ledger.fileName).count / Self.pageSize
        #expect(pages > 10)
        var replaced = 0
        for page in 0..<pages {
            // The first page has the schema. A connection keeps that, so all others are overwritten instead.
            let range = isServing && page == 0 ? 1..<pages : page..<page + 1
            if try await hasReplacedLedger(after: range, damage, isServing: isServing) { replaced += 1 }
        }
        #expect(replaced > pages / 2)
    }

    /// Damages a copy of the directory, and uses it.
    private func hasReplacedLedger(after pages: Range<Int>, _ damage: Damage, isServing: Bool) async throws -> Bool {
        let directory = try TemporaryDirectory(inMemory: true)
        try origin.copy(to: directory)
        if !isServing { try overwrite(pages, with: damage, in: directory) }
        let events = Mutex<[CacheEvent]>([])
        let cache = try Cache(configuration: .test(directory)) { event in events.withLock { $0.append(event) } }
        if isServing { try overwrite(pages, with: damage, in: directory) }
        for number in 0..<Self.count {
            let found = try await cache.bytes(url: url(number))
            #expect(found == nil || !isPurged(number) && found == [UInt8(number), 1], "\(pages): \(number)")
        }
        // A purge that meets the damage holds as well, even if it could not be recorded.
        _ = try? await cache.purge(.prefix(url(1)))
        cache.forgetHot()
        #expect(try await cache.bytes(url: url(1)) == nil)
        try await waitUntil("storing") { try await cache.put([1, 2, 3], url: "https://b/").isStored }
        #expect(try await cache.bytes(url: "https://b/") == [1, 2, 3])
        cache.close()

        let reported = events.withLock { $0 }
        #expect(reported.allSatisfy { if case .ledgerReplaced = $0 { true } else { false } }, "\(pages): \(reported)")
        #expect(reported.count <= 1, "\(pages): \(reported)")
        let again = try Cache(configuration: .test(directory)) { event in events.withLock { $0.append(event) } }
        defer { again.close() }
        for number in 0..<Self.count where isPurged(number) || number == 1 || number > 9 && url(number).hasPrefix(url(1)) {
            #expect(try await again.bytes(url: url(number)) == nil, "\(pages): \(number) after a restart")
        }
        // Damage that no connection has read yet is found now at the latest.
        let last = try await again.bytes(url: "https://b/")
        if events.withLock({ $0.count }) == reported.count { #expect(last == [1, 2, 3], "\(pages)") }
        return !reported.isEmpty
    }
}
