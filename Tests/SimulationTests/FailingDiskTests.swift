import Foundation
import Glibc
import SQLite
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

        /// The index lacks the line of a rendition when a purge of it cannot be written to the journal.
        @Test func aPurgeThatIsNotDurableCoversWhatTheIndexHasYetToApply() throws {
            let disk = try createDisk()
            defer { remove(disk) }
            let cache = try open("\(disk.root)/0")
            defer { cache.close() }
            let other = try SQLiteConnection(path: "\(disk.root)/0/index.sqlite")
            try other.execute("CREATE TRIGGER full BEFORE INSERT ON objects BEGIN SELECT RAISE(ABORT, 'full'); END")
            try publish(cache)
            try other.execute("DROP TRIGGER full")
            try #require(cache.store.aliasRow(key) == nil, "the index is not behind")
            disk.faults.failedFileSync = 1
            try #require(cache.store.applyPurge(.url(Self.url)) {}.failure != nil)
            disk.faults.failedFileSync = 0

            cache.store.catchUp()
            #expect(cache.store.aliasRow(key) == nil)
            cache.store.retryFailedChanges()
            #expect(!cache.store.isCatchingUp)
            #expect(cache.store.aliasRow(key) == nil)
            #expect(try DirectoryEntries.files("\(disk.root)/0/objects").isEmpty)
        }

        /// The index is behind the journal, so the row of the stored object is hidden, and the publish finds a file of that name.
        @Test(arguments: [
            SimulatedDisk.Ending.process, .powerLoss(survival: 0), .powerLoss(survival: 0.5), .powerLoss(survival: 1),
        ])
        func aPublishOverAHiddenRowLeadsToNoOtherBytesWhereverItEnds(_ ending: SimulatedDisk.Ending) throws {
            let (old, new): ([UInt8], [UInt8]) = ([1, 2, 3], [4, 5, 6])
            var found: Set<[UInt8]> = []
            var isComplete = false
            for calls in 1...200 where !isComplete {
                let disk = try createDisk()
                defer { remove(disk) }
                let first = try open("\(disk.root)/0")
                try publish(first, old)
                first.close()
                #expect(unlink("\(disk.root)/0/index.sqlite") == 0)
                try disk.remount("\(disk.root)/0", after: .process, at: "\(disk.root)/1")

                let second = try open("\(disk.root)/1")
                try #require(second.store.isCatchingUp)
                disk.callsUntilCrash = calls
                try? publish(second, new)
                isComplete = !disk.isDead
                disk.crash()
                second.close()
                try disk.remount("\(disk.root)/1", after: ending, at: "\(disk.root)/2")

                for path in try DirectoryEntries.files("\(disk.root)/2/objects") {
                    #expect([old, new].contains(DirectoryEntries.contents(of: path)), "after \(calls) calls")
                }
                let third = try open("\(disk.root)/2")
                defer { third.close() }
                third.store.catchUp()
                if let rendition = third.finder.rendition(under: key) {
                    let bytes = try DescriptorIO.read(3, from: rendition.descriptor.number, at: 0)
                    #expect([old, new].contains(bytes), "after \(calls) calls")
                    #expect(try rendition.content == ContentDigest(of: rendition.descriptor), "after \(calls) calls")
                    found.insert(bytes)
                }
                // What the crash left does not prevent that the object is stored again.
                try publish(third, new)
                #expect(third.finder.rendition(under: key) != nil, "after \(calls) calls")
            }
            #expect(isComplete)
            // Both were met, so the crashes lay on both sides of the replacement.
            if case .process = ending { #expect(found == [old, new]) }
        }

        private func createDisk() throws -> SimulatedDisk {
            let root = "/dev/shm/gifreel-disk-\(UUID().uuidString)"
            try Files.createDirectory(root)
            let disk = SimulatedDisk(root: root, seed: 1)
            disk.begin()
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

        private func publish(_ cache: Cache, _ bytes: [UInt8] = [1, 2, 3]) throws {
            let staged = try cache.publisher.createFile(expecting: Int64(bytes.count))
            try DescriptorIO.write(bytes, to: staged.number, at: 0)
            let job = PublishJob(
                staged: staged,
                id: ObjectID(source: SourceContents(group: 0, version: 1).digest, rendition: "mp4", encoderVersion: ""),
                fileExtension: "mp4", facts: [], alias: AliasRecord(key: key, sourceURL: Self.url, fetchedAt: 0),
                epoch: cache.epoch(for: Self.url))
            _ = try cache.publisher.process(job).get()
        }
    }
}
