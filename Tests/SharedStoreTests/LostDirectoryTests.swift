import Foundation
import SystemIO
import TestSupport
import Testing

@testable import SharedStore

@Suite("A queue whose directory is replaced keeps its confirmed deletions") struct LostDirectoryTests {
    private func put(_ rendition: TestRendition, _ queue: WriteBehindQueue) throws {
        queue.put(rendition.name, try rendition.file(), rendition.record, mediaType: "video/mp4")
    }

    @Test func aDirectoryThatWasReplacedIsOpenedAgain() async throws {
        let fixture = try QueueFixture()
        let queue = try fixture.queue()
        let (lost, first, second, put) = (
            try TestRendition(1), try TestRendition(2), try TestRendition(3), try TestRendition(4)
        )
        queue.put(lost.name, try lost.file(), lost.record, mediaType: "video/mp4")
        #expect(await queue.delete(first.name))
        let former = fixture.folder.appendingPathComponent("former").path
        try FileManager.default.moveItem(atPath: fixture.path, toPath: former)
        #expect(await queue.delete(second.name))
        try self.put(put, queue)
        // The put of the former directory has no data any more.
        let entry = try #require(await queue.next())
        #expect(entry.name == lost.name)
        await #expect(throws: StoreError.self) { _ = try await queue.data(of: entry) }
        queue.close()
        let next = try fixture.queue()
        defer { next.close() }
        var names: [RenditionName] = []
        for _ in 0..<3 { names.append(try #require(await next.next()).name) }
        #expect(names == [first, second, put].map(\.name))
    }

    @Test func putsOfADirectoryThatReturnsAreNotSent() async throws {
        let fixture = try QueueFixture()
        let queue = try fixture.queue()
        defer { queue.close() }
        let a = try TestRendition(1)
        try put(a, queue)
        #expect(await queue.delete(try TestRendition(2).name))
        let former = fixture.folder.appendingPathComponent("former").path
        try FileManager.default.moveItem(atPath: fixture.path, toPath: former)
        #expect(await queue.delete(a.name))
        try FileManager.default.removeItem(atPath: fixture.path)
        try FileManager.default.moveItem(atPath: former, toPath: fixture.path)
        #expect(await queue.delete(try TestRendition(3).name))
        #expect(try fixture.files() == ["0000000000000002.entry", "0000000000000003.entry", "0000000000000004.entry"])
    }

    @Test func deletesOfADirectoryThatReturnsAreSent() async throws {
        let fixture = try QueueFixture()
        let (known, put, sent, trigger) = (
            try TestRendition(1), try TestRendition(2), try TestRendition(3), try TestRendition(4)
        )
        // A process confirms deletes, and ends before they are sent.
        do {
            let queue = try fixture.queue()
            for rendition in [known, sent] { #expect(await queue.delete(rendition.name)) }
            try self.put(put, queue)
            queue.close()
        }
        let former = fixture.folder.appendingPathComponent("former").path
        try FileManager.default.moveItem(atPath: fixture.path, toPath: former)
        do {
            // The next one starts without its directory. Its sequences are those of the former entries.
            let queue = try fixture.queue()
            defer { queue.close() }
            #expect(await queue.delete(put.name))
            #expect(await queue.delete(known.name))
            try FileManager.default.removeItem(atPath: fixture.path)
            try FileManager.default.moveItem(atPath: former, toPath: fixture.path)
            #expect(await queue.delete(trigger.name))
            #expect(queue.hasDelete(of: sent.name) && queue.gauges.entries == 4)
        }
        // One file per name, and no put.
        #expect(
            try fixture.files() == [1, 2, 3, 4].map { "000000000000000\($0).entry" })
        let queue = try fixture.queue()
        defer { queue.close() }
        var names: Set<RenditionName> = []
        for _ in 0..<4 {
            let entry = try #require(await queue.next())
            #expect(entry.change == .delete)
            names.insert(entry.name)
        }
        #expect(names == Set([known, put, sent, trigger].map(\.name)))
    }

    @Test func aDeleteOfADirectoryThatReturnsWinsOverThePutsBeforeIt() async throws {
        let fixture = try QueueFixture()
        let a = try TestRendition(1)
        do {
            let queue = try fixture.queue()
            #expect(await queue.delete(a.name))
            queue.close()
        }
        let former = fixture.folder.appendingPathComponent("former").path
        try FileManager.default.moveItem(atPath: fixture.path, toPath: former)
        do {
            let queue = try fixture.queue()
            defer { queue.close() }
            try FileManager.default.removeItem(atPath: fixture.path)
            try FileManager.default.moveItem(atPath: former, toPath: fixture.path)
            // The put finds the directory.
            try put(a, queue)
            let put = try #require(await queue.next())
            #expect(put.change != .delete && queue.hasDelete(of: a.name))
            queue.putBack(put)
        }
        let queue = try fixture.queue()
        defer { queue.close() }
        #expect(queue.gauges == .init(entries: 1, bytes: 0, dropped: 0))
        #expect(try #require(await queue.next()).change == .delete)
    }
}
