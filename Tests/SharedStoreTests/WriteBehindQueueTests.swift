import Foundation
import SystemIO
import TestSupport
import Testing

@testable import SharedStore

@Suite("The write-behind queue keeps its order, its bounds and its files") struct WriteBehindQueueTests {
    private func put(_ rendition: TestRendition, _ queue: WriteBehindQueue) throws {
        queue.put(rendition.name, try rendition.file(), rendition.record, mediaType: "video/mp4")
    }

    @Test func writesOfOneNameAreSentOneAfterAnother() async throws {
        let fixture = try QueueFixture()
        let queue = try fixture.queue()
        defer { queue.close() }
        let (a, b) = (try TestRendition(1), try TestRendition(2))
        try put(a, queue)
        let first = try #require(await queue.next())
        #expect(first.name == a.name)
        #expect(await queue.delete(a.name))
        try put(a, queue)
        try put(b, queue)
        let second = try #require(await queue.next())
        #expect(second.name == b.name)
        queue.finish(second)
        queue.finish(first)
        let third = try #require(await queue.next())
        #expect(third.name == a.name && third.change == .delete)
        queue.finish(third)
        let fourth = try #require(await queue.next())
        #expect(fourth.name == a.name && fourth.change != .delete)
        queue.finish(fourth)
        #expect(await queue.drain(within: .seconds(10)))
    }

    @Test func aPutOfTheSameNameIsQueuedOnce() async throws {
        let fixture = try QueueFixture()
        let queue = try fixture.queue()
        defer { queue.close() }
        let a = try TestRendition(1)
        for _ in 0..<3 { try put(a, queue) }
        #expect(queue.gauges == .init(entries: 1, bytes: 5000, dropped: 0))
    }

    @Test func aDeleteWithdrawsThePutsBeforeIt() async throws {
        let fixture = try QueueFixture()
        let queue = try fixture.queue()
        defer { queue.close() }
        let a = try TestRendition(1)
        try put(a, queue)
        #expect(await queue.delete(a.name))
        #expect(queue.hasDelete(of: a.name))
        #expect(queue.gauges == .init(entries: 1, bytes: 0, dropped: 0))
        #expect(try fixture.files() == ["0000000000000002.entry"])
        let entry = try #require(await queue.next())
        #expect(entry.change == .delete)
        queue.finish(entry)
        #expect(!queue.hasDelete(of: a.name))
    }

    @Test func aPutThatIsWithdrawnWhileItIsSentIsNotSentAgain() async throws {
        let fixture = try QueueFixture()
        let queue = try fixture.queue()
        defer { queue.close() }
        let a = try TestRendition(1)
        try put(a, queue)
        let sending = try #require(await queue.next())
        #expect(await queue.delete(a.name))
        queue.putBack(sending)
        let next = try #require(await queue.next())
        #expect(next.change == .delete)
    }

    @Test func theOldestPutsAreDroppedWhereTheQueueIsFull() async throws {
        let fixture = try QueueFixture()
        let queue = try fixture.queue(puts: 2, bytes: 12_000)
        defer { queue.close() }
        let renditions = try (1...6).map { try TestRendition($0) }
        #expect(await queue.delete(renditions[5].name))
        for rendition in renditions[..<4] {
            try put(rendition, queue)
            // Only a put that is on disk can be dropped.
            try await waitUntil("the record") { () async throws in
                try fixture.files().count { $0.hasSuffix(".entry") } == queue.gauges.entries
            }
        }
        #expect(queue.gauges == .init(entries: 3, bytes: 10_000, dropped: 2))
        var names: [RenditionName] = []
        for _ in 0..<3 { names.append(try #require(await queue.next()).name) }
        #expect(names == [renditions[5].name, renditions[2].name, renditions[3].name])
        try put(try TestRendition(9, count: 13_000), queue)
        #expect(queue.gauges.dropped == 3)
    }

    @Test func deletesMakeNoRoomForPutsAndHaveALimitOfTheirOwn() async throws {
        let fixture = try QueueFixture()
        let queue = try fixture.queue(puts: 1, bytes: 6000, deletes: 3)
        defer { queue.close() }
        let deleted = try (1...3).map { try TestRendition($0).name }
        for name in deleted { #expect(await queue.delete(name)) }
        #expect(await !queue.delete(try TestRendition(4).name))
        // Again, which takes the place of the former one.
        #expect(await queue.delete(deleted[2]))
        let a = try TestRendition(5)
        try put(a, queue)
        var sending: [QueueEntry] = []
        for _ in 0..<4 { sending.append(try #require(await queue.next())) }
        #expect(sending.map(\.name) == deleted + [a.name])
        for entry in sending.dropLast() { queue.putBack(entry) }
        // The put that is being sent fills the queue.
        try put(try TestRendition(6), queue)
        #expect(queue.gauges == .init(entries: 4, bytes: 5000, dropped: 1))
        for name in deleted { #expect(queue.hasDelete(of: name)) }
    }

    @Test func aDeleteThatIsNotDurableLeavesNoPutForTheNextStart() async throws {
        let fixture = try QueueFixture()
        let a = try TestRendition(1)
        do {
            let queue = try fixture.queue(deletes: 0)
            try put(a, queue)
            let sending = try #require(await queue.next())
            #expect(await !queue.delete(a.name))
            queue.putBack(sending)
            queue.close()
        }
        #expect(try fixture.files().isEmpty)
    }

    @Test(arguments: [false, true]) func aDeleteTakesOverTheFileOfAFormerOneOnAFullDisk(isSent: Bool) async throws {
        let fixture = try QueueFixture()
        let queue = try fixture.queue()
        defer { queue.close() }
        let name = try TestRendition(1).name
        #expect(await queue.delete(name))
        let sending = isSent ? await queue.next() : nil
        // The file that is written before it is renamed cannot be created.
        try fixture.makeDirectory("0000000000000002.part")
        #expect(await queue.delete(name))
        if let sending { queue.putBack(sending) }
        #expect(await queue.delete(try TestRendition(2).name))
        let entries = try fixture.files().filter { $0.hasSuffix(".entry") }
        #expect(entries == ["0000000000000002.entry", "0000000000000003.entry"])
    }

    @Test(arguments: [false, true]) func aDeleteThatCannotBeWrittenKeepsTheFileOfAFormerOne(isSent: Bool) async throws {
        let fixture = try QueueFixture()
        let queue = try fixture.queue()
        defer { queue.close() }
        let name = try TestRendition(1).name
        #expect(await queue.delete(name))
        if isSent { _ = try #require(await queue.next()) }
        try fixture.makeDirectory("0000000000000002.part")
        try fixture.makeDirectory("0000000000000002.entry")
        #expect(await !queue.delete(name))
        #expect(try fixture.files().contains("0000000000000001.entry"))
    }

    @Test func deletesOfOneNameAtTheSameTimeAreAllDurable() async throws {
        let fixture = try QueueFixture()
        let queue = try fixture.queue()
        defer { queue.close() }
        let name = try TestRendition(1).name
        for _ in 0..<20 {
            let results = await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<4 { group.addTask { await queue.delete(name) } }
                return await group.reduce(into: [Bool]()) { $0.append($1) }
            }
            #expect(results == [true, true, true, true])
        }
        #expect(queue.hasDelete(of: name))
        // Each one withdraws those that are on disk.
        #expect(await queue.delete(name))
        #expect(queue.gauges.entries == 1)
    }

    @Test func entriesSurviveARestartInTheirOrder() async throws {
        let fixture = try QueueFixture()
        let renditions = try (1...12).map { try TestRendition($0) }
        do {
            let queue = try fixture.queue()
            for rendition in renditions { try put(rendition, queue) }
            #expect(await queue.delete(renditions[3].name))
            queue.close()
        }
        let queue = try fixture.queue()
        defer { queue.close() }
        #expect(queue.gauges == .init(entries: 12, bytes: 55_000, dropped: 0))
        var names: [RenditionName] = []
        for _ in 0..<12 {
            let entry = try #require(await queue.next())
            names.append(entry.name)
            guard case .put(let record, "video/mp4") = entry.change else {
                #expect(entry.change == .delete)
                continue
            }
            let rendition = try #require(renditions.first { $0.name == entry.name })
            #expect(record == rendition.record)
            #expect(try await queue.data(of: entry).readAll() == rendition.bytes)
        }
        #expect(names == renditions.map(\.name).filter { $0 != renditions[3].name } + [renditions[3].name])
        // New entries come after the old ones.
        try put(renditions[3], queue)
        #expect(queue.gauges.entries == 13)
    }

    @Test func putsOfAFormerProcessMayBeHeldUntilPurgesWereApplied() async throws {
        let fixture = try QueueFixture()
        let (purged, kept, deleted, new) = (
            try TestRendition(1), try TestRendition(2), try TestRendition(3), try TestRendition(4)
        )
        do {
            let queue = try fixture.queue()
            for rendition in [purged, kept] { try put(rendition, queue) }
            #expect(await queue.delete(deleted.name))
            queue.close()
        }
        let queue = try fixture.queue(holdsPuts: true)
        defer { queue.close() }
        let delete = try #require(await queue.next())
        #expect(delete.name == deleted.name)
        queue.finish(delete)
        try put(new, queue)
        let put = try #require(await queue.next())
        #expect(put.name == new.name)
        queue.finish(put)
        // What is held does not hold up a stop.
        #expect(await !queue.drain(within: .seconds(3600)))
        queue.endPauses()
        #expect(await queue.delete(purged.name))
        queue.finish(try #require(await queue.next()))
        queue.releasePuts()
        #expect(try #require(await queue.next()).name == kept.name)
        #expect(queue.gauges.entries == 1)
    }

    @Test func heldPutsCanBeDroppedForGood() async throws {
        let fixture = try QueueFixture()
        let (held, deleted, new) = (try TestRendition(1), try TestRendition(2), try TestRendition(3))
        do {
            let queue = try fixture.queue()
            try put(held, queue)
            #expect(await queue.delete(deleted.name))
            queue.close()
        }
        do {
            let queue = try fixture.queue(holdsPuts: true)
            defer { queue.close() }
            try put(new, queue)
            await queue.dropHeldPuts()
            #expect(queue.gauges == .init(entries: 2, bytes: new.bytes.count, dropped: 1))
            queue.releasePuts()
        }
        let queue = try fixture.queue()
        defer { queue.close() }
        for name in [deleted.name, new.name] { #expect(try #require(await queue.next()).name == name) }
        #expect(queue.gauges.entries == 2)
    }

    @Test func debrisOfACrashIsRemoved() async throws {
        let fixture = try QueueFixture()
        let (a, b, c) = (try TestRendition(1), try TestRendition(2), try TestRendition(3))
        do {
            let directory = try QueueDirectory(path: fixture.path)
            func add(_ sequence: UInt64, _ rendition: TestRendition) throws {
                try directory.add(
                    QueueEntry(
                        sequence: sequence, name: rendition.name, change: .put(rendition.record, mediaType: "video/mp4")),
                    rendition.file())
            }
            for (sequence, rendition) in [(1, a), (2, b), (3, c), (4, a), (5, b)] { try add(UInt64(sequence), rendition) }
            // The delete is recorded, and what it withdraws is not removed yet.
            try directory.add(QueueEntry(sequence: 6, name: b.name, change: .delete), nil)
        }
        func url(_ name: String) -> URL { URL(fileURLWithPath: fixture.path).appendingPathComponent(name) }
        // Data without an entry, an entry without data, half an entry, a damaged one, and a file of somebody else.
        try FileManager.default.removeItem(at: url("0000000000000003.entry"))
        try FileManager.default.removeItem(at: url("0000000000000004.data"))
        try Data("name: x".utf8).write(to: url("0000000000000007.part"))
        var damaged = try Data(contentsOf: url("0000000000000001.entry"))
        damaged[10] ^= 1
        try damaged.write(to: url("0000000000000008.entry"))
        try Data([1]).write(to: url("notes.txt"))
        let queue = try fixture.queue()
        defer { queue.close() }
        #expect(
            try fixture.files() == [
                "0000000000000001.data", "0000000000000001.entry", "0000000000000006.entry", "notes.txt",
            ])
        #expect(queue.gauges.entries == 2)
    }

    @Test func anEntryThatCannotBeReadIsKept() async throws {
        let fixture = try QueueFixture()
        let name = try TestRendition(1).name
        do {
            let queue = try fixture.queue()
            #expect(await queue.delete(name))
            queue.close()
        }
        // A directory in its place, of which a read fails.
        let (entry, kept) = ("\(fixture.path)/0000000000000001.entry", fixture.folder.appendingPathComponent("kept").path)
        try FileManager.default.moveItem(atPath: entry, toPath: kept)
        try fixture.makeDirectory("0000000000000001.entry")
        #expect(throws: StoreError.file(SystemError("read(\(entry))", code: EISDIR))) { try fixture.queue() }
        #expect(try fixture.files() == ["0000000000000001.entry"])
        // A link to nothing, which cannot be opened.
        try FileManager.default.removeItem(atPath: entry)
        try FileManager.default.createSymbolicLink(atPath: entry, withDestinationPath: "nothing")
        #expect(throws: StoreError.file(SystemError("open(\(entry))", code: ENOENT))) { try fixture.queue() }
        #expect(try fixture.files() == ["0000000000000001.entry"])
        #expect(unlink(entry) == 0)
        try FileManager.default.moveItem(atPath: kept, toPath: entry)
        let queue = try fixture.queue()
        defer { queue.close() }
        #expect(queue.hasDelete(of: name))
    }

    @Test func aFileOnTheSameFileSystemIsLinkedAndOutlivesItsName() async throws {
        let fixture = try QueueFixture()
        let queue = try fixture.queue()
        defer { queue.close() }
        let a = try TestRendition(1)
        let file = try a.file(in: fixture.folder)
        queue.put(a.name, file, a.record, mediaType: "video/mp4")
        let entry = try #require(await queue.next())
        let data = try await queue.data(of: entry)
        func inode(_ descriptor: SharedDescriptor) throws -> UInt64 {
            var status = stat()
            #expect(fstat(descriptor.number, &status) == 0)
            return UInt64(status.st_ino)
        }
        #expect(try inode(data) == inode(file))
        try FileManager.default.removeItem(at: fixture.folder.appendingPathComponent("\(a.name)"))
        #expect(try data.readAll() == a.bytes)
    }

    @Test func oneProcessUsesADirectory() throws {
        let fixture = try QueueFixture()
        let queue = try fixture.queue()
        #expect(throws: StoreError.self) { try fixture.queue() }
        queue.close()
        withExtendedLifetime(queue) {}
    }

    @Test func aDiskThatTakesNoEntriesIsReportedOnceAndDeletionsAreStillSent() async throws {
        let fixture = try QueueFixture()
        let queue = try fixture.queue()
        defer { queue.close() }
        try FileManager.default.removeItem(atPath: fixture.path)
        try Data().write(to: URL(fileURLWithPath: fixture.path))
        for seed in 1...3 { #expect(await !queue.delete(try TestRendition(UInt64(seed)).name)) }
        #expect(fixture.events.values.count == 1)
        // Puts are dropped. A deletion is refused to lookups and sent, unless the process ends before.
        try put(TestRendition(4), queue)
        try await waitUntil("the put to be dropped") { queue.gauges.dropped == 1 }
        let deleted = try TestRendition(1)
        #expect(queue.gauges.entries == 3 && queue.hasDelete(of: deleted.name))
        let entry = try #require(await queue.next())
        #expect(entry.change == .delete && entry.name == deleted.name)
        queue.finish(entry)
        #expect(!queue.hasDelete(of: deleted.name))
    }

    @Test func aClosedQueueTakesAndGivesNothing() async throws {
        let fixture = try QueueFixture()
        let queue = try fixture.queue()
        let waiting = Task { await queue.next() }
        let draining = Task { await queue.drain(within: .seconds(600)) }
        queue.close()
        #expect(await waiting.value == nil)
        #expect(await draining.value)
        let a = try TestRendition(1)
        try put(a, queue)
        #expect(await !queue.delete(a.name))
        #expect(queue.gauges.entries == 0)
    }

    @Test func drainingEndsWithItsLimit() async throws {
        let fixture = try QueueFixture()
        let queue = try fixture.queue()
        defer { queue.close() }
        try put(try TestRendition(1), queue)
        #expect(await !queue.drain(within: .milliseconds(20)))
    }

    @Test func drainingEndsWithALimitThatPassesBeforeItWaits() async throws {
        let fixture = try QueueFixture()
        let queue = try fixture.queue()
        defer { queue.close() }
        #expect(await queue.delete(try TestRendition(1).name))
        let ends = Recorder<Bool>()
        let draining = Task {
            for _ in 0..<500 { ends.add(await queue.drain(within: .zero)) }
        }
        defer { draining.cancel() }
        try await waitUntil("all drains to end") { () async in ends.values.count == 500 }
        #expect(!ends.values.contains(true))
    }

    @Test func eachDrainEndsWithItsOwnLimit() async throws {
        let fixture = try QueueFixture()
        let queue = try fixture.queue()
        defer { queue.close() }
        #expect(await queue.delete(try TestRendition(1).name))
        let ends = Recorder<Bool>()
        let draining = Task { ends.add(await queue.drain(within: .seconds(3600))) }
        for _ in 0..<20 { #expect(await !queue.drain(within: .milliseconds(1))) }
        #expect(ends.values.isEmpty)
        queue.finish(try #require(await queue.next()))
        await draining.value
        #expect(ends.values == [true])
    }
}
