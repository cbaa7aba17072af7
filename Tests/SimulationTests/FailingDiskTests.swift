import Foundation
import Glibc
import SystemIO
import Testing

@testable import Store

extension OneAtATime {
    @Suite("The cache keeps its promises when a call of the disk fails") struct FailingDiskTests {
        private static let url = "https://a.test/1.gif"

        private static let endings = [
            SimulatedDisk.Ending.process, .powerLoss(survival: 0), .powerLoss(survival: 0.5), .powerLoss(survival: 1),
        ]

        @Test(arguments: endings) func aPurgeThatHasReturnedOutlivesTheProcess(_ ending: SimulatedDisk.Ending) throws {
            let disk = try createDisk()
            defer { remove(disk) }
            let cache = try open("\(disk.root)/0")
            try publish(cache)
            cache.housekeeper.runRound()
            // Its file would otherwise be missing.
            disk.faults.failedRemoval = 1
            _ = try cache.apply([cache.newPurge(.url(Self.url))]).get()
            let reopened = try reopen(cache, disk, ending)
            defer { reopened.close() }
            #expect(try reopened.finder.rendition(under: key) == nil)
        }

        /// A failed sync may leave a gap in the log, which would end the recovery of all that is written after it.
        @Test(arguments: endings) func aPurgeAfterAFailedSyncOutlivesTheProcess(_ ending: SimulatedDisk.Ending) throws {
            let disk = try createDisk()
            defer { remove(disk) }
            let cache = try open("\(disk.root)/0")
            try publish(cache)
            cache.housekeeper.runRound()
            disk.faults.failedRemoval = 1
            disk.faults.failedFileSync = 1
            guard case .failure = cache.apply([cache.newPurge(.url(Self.url))]) else {
                Issue.record("the sync did not fail")
                return
            }
            #expect(try cache.finder.rendition(under: key) == nil)
            disk.faults.failedFileSync = 0
            _ = try cache.apply([cache.newPurge(.url("https://a.test/other"))]).get()
            let reopened = try reopen(cache, disk, ending)
            defer { reopened.close() }
            #expect(try reopened.finder.rendition(under: key) == nil)
        }

        /// SQLite calls a page that cannot be read damaged, whether it is in the database or in its log.
        @Test(arguments: [false, true]) func readsThatFailForAWhileCostNoRendition(isInLog: Bool) throws {
            let disk = try createDisk()
            defer { remove(disk) }
            let first = try open("\(disk.root)/0")
            try publish(first)
            if !isInLog { first.close() }
            let cache = isInLog ? first : try open("\(disk.root)/0")
            defer { cache.close() }
            if isInLog {
                // A connection that is in use already has to read what changes after that.
                #expect(try cache.finder.rendition(under: key) != nil)
                try publish(cache)
            }
            disk.faults.failsReads = true
            #expect(try cache.finder.rendition(under: key) == nil)
            _ = cache.apply([cache.newPurge(.url("https://a.test/other"))])
            disk.faults.failsReads = false
            cache.housekeeper.runRound()
            #expect(try cache.finder.rendition(under: key) != nil)
            guard case .existing = try publish(cache) else {
                Issue.record("nothing is stored")
                return
            }
            #expect(!Files.exists("\(disk.root)/0/ledger.damaged"))
        }

        @Test func aDirectoryOfWhichTheDiskSaysNothingForAWhileIsNotLost() throws {
            let disk = try createDisk()
            defer { remove(disk) }
            let cache = try open("\(disk.root)/0")
            defer { cache.close() }
            disk.faults.failsReads = true
            cache.context.checkPlace()
            disk.faults.failsReads = false
            #expect(cache.statistics().refusal == nil)
            guard case .stored = try publish(cache) else {
                Issue.record("nothing is stored")
                return
            }
        }

        @Test(arguments: endings) func whatIsStoredOutlivesTheProcessAfterARound(_ ending: SimulatedDisk.Ending) throws {
            let disk = try createDisk()
            defer { remove(disk) }
            let cache = try open("\(disk.root)/0")
            try publish(cache)
            cache.housekeeper.runRound()
            let reopened = try reopen(cache, disk, ending)
            defer { reopened.close() }
            #expect(try reopened.finder.rendition(under: key) != nil)
        }

        @Test func aRenditionWhoseSyncHasFailedIsServedFromMemory() throws {
            let disk = try createDisk()
            defer { remove(disk) }
            let cache = try open("\(disk.root)/0")
            defer { cache.close() }
            disk.faults.failedFileSync = 1
            let outcome = try publish(cache)
            disk.faults.failedFileSync = 0
            guard case .unstored(let rendition, .failed) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(try rendition.descriptor.readAll() == [1, 2, 3])
            let path = try FileManager.default.destinationOfSymbolicLink(
                atPath: "/proc/self/fd/\(rendition.descriptor.number)")
            #expect(path.hasPrefix("/memfd:"))
        }

        @Test func aFileThatCannotBeRemovedIsRemovedLater() throws {
            let disk = try createDisk()
            defer { remove(disk) }
            let cache = try open("\(disk.root)/0")
            try publish(cache)
            disk.faults.failedRemoval = 1
            _ = try cache.apply([cache.newPurge(.url(Self.url))]).get()
            disk.faults.failedRemoval = 0
            cache.close()
            #expect(try files("\(disk.root)/0").count == 1)
            let reopened = try open("\(disk.root)/0")
            defer { reopened.close() }
            reopened.housekeeper.runRound()
            #expect(try files("\(disk.root)/0").isEmpty)
        }

        /// Files that a crash may leave: one of a rendition, and another one.
        @Test(arguments: ["mp4", "mp4~"]) func aFileWithoutARowThatCannotBeRemovedIsRemovedLater(_ ending: String) throws {
            let disk = try createDisk()
            defer { remove(disk) }
            let cache = try open("\(disk.root)/0")
            try publish(cache)
            let crashed = try reopen(cache, disk, .process)
            let path = crashed.configuration.directory
            let stored = try files(path)
            let other = try #require(stored.first).replacing(".mp4", with: "").dropLast() + "f.\(ending)"
            try Files.write([1], to: String(other))
            disk.faults.failedRemoval = 1
            for _ in 1...2 { crashed.housekeeper.runRound() }
            disk.faults.failedRemoval = 0
            crashed.close()
            #expect(try files(path).count == 2)
            let reopened = try open(path)
            defer { reopened.close() }
            reopened.housekeeper.runRound()
            #expect(try files(path) == stored)
            #expect(reopened.statistics().orphans == 1)
        }

        @Test func aFileThatIsPublishedAgainIsNotSwept() throws {
            let disk = try createDisk()
            defer { remove(disk) }
            let cache = try open("\(disk.root)/0")
            defer { cache.close() }
            for scope in [PurgeScope.url(Self.url), .all] {
                try publish(cache)
                disk.faults.failedRemoval = 1
                _ = try cache.apply([cache.newPurge(scope)]).get()
                disk.faults.failedRemoval = 0
                try publish(cache)
                cache.housekeeper.runRound()
                #expect(try files("\(disk.root)/0").count == 1)
                cache.forgetHot()
                #expect(try cache.finder.rendition(under: key) != nil)
            }
        }

        /// The file of a purged object is still there, and the object is published again.
        @Test(arguments: endings)
        func aPublishOverAPurgedFileLeadsToNoOtherBytesWhereverItEnds(_ ending: SimulatedDisk.Ending) throws {
            let (old, new): ([UInt8], [UInt8]) = ([1, 2, 3], [4, 5, 6])
            var isFound = false
            var isComplete = false
            for calls in 1...200 where !isComplete {
                let disk = try createDisk()
                defer { remove(disk) }
                let first = try open("\(disk.root)/0")
                try publish(first, old)
                disk.faults.failedRemoval = 1
                _ = try first.apply([first.newPurge(.url(Self.url))]).get()
                disk.faults.failedRemoval = 0
                first.close()
                try disk.remount("\(disk.root)/0", after: .process, at: "\(disk.root)/1")

                let second = try open("\(disk.root)/1")
                disk.callsUntilCrash = calls
                _ = try? publish(second, new)
                isComplete = !disk.isDead
                let third = try reopen(second, disk, ending)
                defer { third.close() }
                for path in try files(third.configuration.directory) {
                    #expect([old, new].contains(DirectoryEntries.contents(of: path)), "after \(calls) calls")
                }
                if let rendition = try third.finder.rendition(under: key) {
                    #expect(try rendition.descriptor.readAll() == new, "after \(calls) calls")
                    isFound = true
                }
                // What the crash left does not prevent that the object is stored again.
                try publish(third, new)
                #expect(try third.finder.rendition(under: key) != nil, "after \(calls) calls")
            }
            #expect(isComplete)
            if case .process = ending { #expect(isFound) }
        }

        /// Ends a process, and starts the next one.
        private func reopen(_ cache: Cache, _ disk: SimulatedDisk, _ ending: SimulatedDisk.Ending) throws -> Cache {
            disk.faults = SimulatedDisk.Faults()
            disk.callsUntilCrash = nil
            disk.crash()
            cache.close()
            let path = cache.configuration.directory
            try disk.remount(path, after: ending, at: path + "'")
            return try open(path + "'")
        }

        private func files(_ directory: String) throws -> [String] {
            try DirectoryEntries.files("\(directory)/objects")
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

        @discardableResult
        private func publish(_ cache: Cache, _ bytes: [UInt8] = [1, 2, 3]) throws -> PublishOutcome {
            let staged = try cache.publisher.createFile(expecting: Int64(bytes.count))
            try DescriptorIO.write(bytes, to: staged.number, at: 0)
            let job = PublishJob(
                staged: staged,
                id: ObjectID(source: SourceContents(group: 0, version: 1).digest, rendition: "mp4", encoderVersion: ""),
                fileExtension: "mp4", facts: [],
                alias: AliasRecord(key: key, sourceURL: Self.url, rendition: "mp4", times: OriginTimes(fetchedAt: 0)),
                epoch: cache.epoch)
            return try cache.publisher.process(job)
        }
    }
}
