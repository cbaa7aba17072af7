import Foundation
import SystemIO
import Testing

@testable import Cache

extension OneAtATime {
    @Suite("The cache keeps its promises when a call of the disk fails") struct FailingDiskTests {
        private static let url = "https://a.test/1.gif"

        @Test(arguments: [SimulatedDisk.Ending.process, .powerLoss(survival: 0), .powerLoss(survival: 1)])
        func aPurgeAfterARewriteWhoseSyncHasFailedOutlivesTheProcess(_ ending: SimulatedDisk.Ending) throws {
            let disk = try createDisk()
            defer { remove(disk) }
            let root = disk.root
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

        @Test func aFileThatCannotBeRemovedIsRemovedAfterTheNextStart() throws {
            let disk = try createDisk()
            defer { remove(disk) }
            let cache = try open("\(disk.root)/0")
            cache.housekeeper.runRound()
            try publish(cache)
            disk.faults.failedRemoval = 1
            _ = try cache.purger.run(.url(Self.url)).get()
            disk.faults.failedRemoval = 0
            cache.close()
            #expect(try DirectoryEntries.files("\(disk.root)/0/objects").count == 1)

            let reopened = try open("\(disk.root)/0")
            defer { reopened.close() }
            reopened.housekeeper.runRound()
            #expect(try DirectoryEntries.files("\(disk.root)/0/objects").isEmpty)
            #expect(reopened.statistics().orphans == 1)
        }

        private func createDisk() throws -> SimulatedDisk {
            let root = "/dev/shm/gifreel-disk-\(UUID().uuidString)"
            try Files.createDirectory(root)
            let disk = SimulatedDisk(root: root, seed: 1)
            try disk.begin()
            return disk
        }

        private func remove(_ disk: SimulatedDisk) {
            disk.end()
            try? DirectoryEntries.removeTree(disk.root)
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
