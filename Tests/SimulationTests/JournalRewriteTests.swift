import Foundation
import SystemIO
import Testing

@testable import Cache

extension OneAtATime {
    @Suite("The journal is rewritten while its disk fails") struct JournalRewriteTests {
        private static let url = "https://a.test/1.gif"

        @Test(arguments: [SimulatedDisk.Ending.process, .powerLoss(survival: 0), .powerLoss(survival: 1)])
        func aPurgeAfterARewriteWhoseSyncHasFailedOutlivesTheProcess(_ ending: SimulatedDisk.Ending) throws {
            let root = "/dev/shm/gifreel-rewrite-\(UUID().uuidString)"
            try Files.createDirectory(root)
            defer { try? DirectoryEntries.removeTree(root) }
            let disk = SimulatedDisk(root: root, seed: 1)
            try disk.begin()
            defer { disk.end() }

            let cache = try open("\(root)/0")
            // Enough lines for a rewrite.
            for _ in 0..<40 { try publish(cache) }
            // Only a journal whose rows agree with the files is rewritten.
            cache.housekeeper.runRound()
            #expect(cache.finder.rendition(under: key) != nil)
            let journal = try DirectoryEntries.read("\(root)/0").entries["journal"]
            disk.faults.failedNameSync = 1
            cache.store.compactJournal(floor: 0) { false }
            disk.faults.failedNameSync = 0
            #expect(try DirectoryEntries.read("\(root)/0").entries["journal"] != journal, "it was not rewritten")
            _ = try cache.purger.run(.url(Self.url)).get()
            disk.crash()
            cache.close()
            try disk.remount("\(root)/0", after: ending, at: "\(root)/1")

            let reopened = try open("\(root)/1")
            defer { reopened.close() }
            reopened.store.catchUp()
            #expect(reopened.finder.rendition(under: key) == nil)
        }

        private var key: AliasKey { AliasKey(sourceURL: Self.url, rendition: "mp4") }

        private func open(_ path: String) throws -> Cache {
            var configuration = CacheConfiguration()
            configuration.directory = path
            configuration.minFreeBytes = 0
            return try Cache(
                configuration: configuration, clock: .system,
                threads: CacheThreads(create: CacheThreads.system.create, includeHousekeeping: false), onStep: nil)
        }

        private func publish(_ cache: Cache) throws {
            let staged = try cache.publisher.createFile(expecting: 3)
            try DescriptorIO.write([1, 2, 3], to: staged.number, at: 0)
            let job = PublishJob(
                staged: staged,
                id: ObjectID(source: SourceContents(group: 0, version: 1).digest, rendition: "mp4", encoderVersion: ""),
                fileExtension: "mp4", facts: [], alias: AliasRecord(key: key, sourceURL: Self.url, fetchedAt: 0),
                epoch: cache.epoch(for: Self.url))
            _ = try cache.publisher.process(job).get()
        }
    }
}
