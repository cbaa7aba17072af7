import Foundation
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Store

@Suite("The outbox keeps its order, its bounds and its files", .timeLimit(.minutes(10))) struct OutboxTests {
    private func run(
        puts: Int = 100, bytes: Int = 1 << 30, _ body: (OutboxFixture) async throws -> Void
    ) async throws {
        let fixture = try OutboxFixture(puts: puts, bytes: bytes)
        defer { fixture.stop() }
        try await body(fixture)
    }

    private func renditions(_ count: Int) throws -> [TestRendition] {
        try (1...count).map { try TestRendition(UInt64($0)) }
    }

    @Test func writesOfOneIDAreSentOneAfterAnother() async throws {
        try await run { fixture in
            let (a, b) = (try TestRendition(1), try TestRendition(2))
            let gate = AsyncGate()
            fixture.start { entry, _ in
                if entry.id == a.name.id { await gate.pass() }
                return nil
            }
            try await fixture.put(a)
            try await waitUntil("the upload to begin") { gate.count == 1 }
            try fixture.delete(a)
            try await fixture.put(a)
            try await fixture.put(b)
            try await waitUntil("the other one") { fixture.sent.values.map(\.id) == [b.name.id] }
            #expect(fixture.begun.values.map(\.id) == [a.name.id, b.name.id])
            gate.open()
            #expect(await fixture.outbox.drain(within: .seconds(60)))
            #expect(fixture.sent.values.filter { $0.id == a.name.id }.map(\.isDeletion) == [false, true, false])
            #expect(try fixture.files() == 0)
        }
    }

    @Test func aPutOfTheSameNameIsQueuedOnce() async throws {
        try await run { fixture in
            let a = try TestRendition(1)
            for _ in 0..<3 { try await fixture.put(a) }
            try await fixture.waitForEntries(1, bytes: 5000)
            try await waitUntil("the other files to go") { try fixture.files() == 1 }
        }
    }

    @Test func aPutOutlivesADeletionOfWhatBeganBeforeItsLatestRequest() async throws {
        try await run { fixture in
            let (first, second) = (try TestRendition(1, began: 100), try TestRendition(1, began: 200))
            for rendition in [first, second, first] { try await fixture.put(rendition) }
            try fixture.ledger.write(.full) { try fixture.outbox.addDeletion(of: first.name.id, until: 150, in: $0) }
            fixture.start()
            #expect(await fixture.outbox.drain(within: .seconds(60)))
            #expect(fixture.sent.values.map(\.change).contains(.put(second.name, second.record, mediaType: "video/mp4")))
        }
    }

    @Test func aDeletionWithdrawsTheEntriesBeforeIt() async throws {
        try await run { fixture in
            let a = try TestRendition(1)
            try await fixture.put(a)
            try fixture.delete(a)
            try fixture.delete(a)
            try await fixture.waitForEntries(1, bytes: 0)
            #expect(fixture.outbox.deletion(of: a.name.id) != nil)
            try await waitUntil("the file to go") { try fixture.files() == 0 }
            fixture.start()
            #expect(await fixture.outbox.drain(within: .seconds(60)))
            #expect(fixture.sent.values.map(\.isDeletion) == [true])
            #expect(fixture.outbox.deletion(of: a.name.id) == nil)
        }
    }

    /// Reads hold all idle connections, so that a read by the outbox would have to open another one.
    @Test(arguments: [false, true]) func deletionsAreAddedWhileOthersEnd(whileReading: Bool) async throws {
        let fixture = try OutboxFixture()
        let (ledger, outbox) = (fixture.ledger, fixture.outbox)
        let ids = try renditions(3).map(\.name.id)
        @Sendable func add(_ id: ObjectID, readers: Int) throws {
            if readers > 0 { return try ledger.read { _ in try add(id, readers: readers - 1) } }
            try ledger.write(.normal) { try outbox.addDeletion(of: id, until: 100, in: $0) }
        }
        let ends = Recorder<[Bool]>()
        fixture.start()
        Thread {
            var areKnown: [Bool] = []
            // ThreadSanitizer follows 64 nested locks.
            for round in 0..<(whileReading ? 50 : 2000) {
                let id = ids[round % ids.count]
                try? add(id, readers: whileReading ? round + 4 : 0)
                outbox.sendDeletion(of: id)
                // No other transaction changes the row meanwhile.
                let isKnown = try? ledger.write(.normal) { database in
                    try OutboxTables(database).deletion(of: id) == nil || outbox.deletion(of: id) != nil
                }
                areKnown.append(isKnown ?? false)
            }
            ends.add(areKnown)
        }.start()
        try await waitUntil("the transactions to end") { !ends.values.isEmpty }
        #expect(ends.values.first?.allSatisfy(\.self) == true)
        #expect(await outbox.drain(within: .seconds(60)))
        #expect(ids.allSatisfy { outbox.deletion(of: $0) == nil })
        // Not if the wait fails: threads that wait for each other would hold it up.
        fixture.stop()
    }

    @Test func deletionsSurviveADamagedLedger() async throws {
        try await run { fixture in
            let (a, b, c) = (try TestRendition(1), try TestRendition(2), try TestRendition(3))
            try await fixture.put(a)
            try fixture.delete(b)
            try fixture.ledger.write(.full) { try fixture.outbox.addDeletion(of: c.name.id, until: 100, in: $0) }
            try fixture.ledger.replaceDamaged()
            #expect(fixture.outbox.deletion(of: a.name.id) == nil)
            #expect(fixture.outbox.deletion(of: b.name.id) == b.record.began)
            #expect(fixture.outbox.deletion(of: c.name.id) == 100)
            try await fixture.put(a)
            fixture.start()
            #expect(await fixture.outbox.drain(within: .seconds(60)))
            #expect(Set(fixture.sent.values.map(\.id)) == [a.name.id, b.name.id, c.name.id])
        }
    }

    @Test func aDeletionUpToATimeLeavesLaterPutsAndYieldsToALaterOne() async throws {
        try await run { fixture in
            let (old, new) = (try TestRendition(1, began: 100), try TestRendition(2, began: 101))
            let id = old.name.id
            try await fixture.put(old)
            try await fixture.put(new)
            func delete(_ rendition: TestRendition, until time: Int64) throws {
                try fixture.ledger.write(.full) {
                    try fixture.outbox.addDeletion(of: rendition.name.id, until: time, in: $0)
                }
            }
            try delete(old, until: 100)
            try delete(new, until: 100)
            let left = try fixture.ledger.read { try OutboxTables($0).next(at: 1, limit: 10) }
            #expect(left.filter { !$0.isDeletion }.map(\.id) == [new.name.id])
            #expect(fixture.outbox.deletion(of: id) == 100)
            #expect(old.record.began(until: 100) && !new.record.began(until: 100))
            try delete(old, until: 90)
            #expect(fixture.outbox.deletion(of: id) == 100)
            try delete(old, until: 200)
            #expect(fixture.outbox.deletion(of: id) == 200)
            #expect(try fixture.ledger.read { try OutboxTables($0).deletion(of: id) } == 200)
        }
    }

    @Test func aPutThatIsWithdrawnWhileItIsSentIsNotSentAgain() async throws {
        try await run { fixture in
            let a = try TestRendition(1)
            let gate = AsyncGate()
            fixture.start { entry, _ in
                if entry.isDeletion { return nil }
                await gate.pass()
                return .unreachable(cause: "a test")
            }
            try await fixture.put(a)
            try await waitUntil("the upload to begin") { gate.count == 1 }
            try fixture.delete(a)
            gate.open()
            #expect(await fixture.outbox.drain(within: .seconds(60)))
            #expect(fixture.begun.values.map(\.isDeletion) == [false, true])
            try await waitUntil("the file to go") { try fixture.files() == 0 }
        }
    }

    @Test func aPutWhoseTransactionIsRefusedLeavesNothing() async throws {
        try await run { fixture in
            #expect(try await !fixture.put(TestRendition(1), within: .seconds(3600), isWanted: false))
            try await fixture.waitForEntries(0)
            try await waitUntil("the file to go") { try fixture.files() == 0 }
        }
    }

    @Test func theOldestPutsAreDroppedWhereThereAreTooMany() async throws {
        try await run(puts: 2, bytes: 12_000) { fixture in
            let all = try renditions(6)
            try fixture.delete(all[5])
            for rendition in all[..<4] { try await fixture.put(rendition) }
            try await fixture.waitForEntries(3, bytes: 10_000)
            #expect(fixture.statistics.droppedWrites == 2)
            #expect(try await !fixture.put(TestRendition(9, count: 13_000), within: .seconds(3600)))
            // One that is longer than all of the queue displaces nothing.
            #expect(fixture.statistics.droppedWrites == 3 && fixture.events.values.isEmpty)
            fixture.start(concurrency: 1)
            #expect(await fixture.outbox.drain(within: .seconds(60)))
            #expect(fixture.sent.values.map(\.id) == [all[5], all[2], all[3]].map(\.name.id))
        }
    }

    @Test func aPutThatIsSentIsNotDroppedForAnother() async throws {
        try await run(puts: 1) { fixture in
            let gate = AsyncGate()
            fixture.start { _, _ in
                await gate.pass()
                return nil
            }
            try await fixture.put(TestRendition(1))
            try await waitUntil("the upload to begin") { gate.count == 1 }
            try await fixture.put(TestRendition(2))
            #expect(fixture.statistics.droppedWrites == 1)
            gate.open()
            #expect(await fixture.outbox.drain(within: .seconds(60)))
            #expect(fixture.sent.values.count == 1)
        }
    }

    @Test func entriesSurviveARestartInTheirOrder() async throws {
        try await run { fixture in
            let all = try renditions(12)
            for rendition in all { try await fixture.put(rendition) }
            try fixture.delete(all[3])
            fixture.close()
            try fixture.open()
            let statistics = fixture.statistics
            #expect((statistics.queuedWrites, statistics.queuedBytes, statistics.droppedWrites) == (12, 55_000, 0))
            fixture.start(concurrency: 1)
            #expect(await fixture.outbox.drain(within: .seconds(60)))
            let expected = all.map(\.name.id).filter { $0 != all[3].name.id } + [all[3].name.id]
            #expect(fixture.sent.values.map(\.id) == expected)
            for (entry, rendition) in zip(fixture.sent.values, all[..<3] + all[4...]) {
                #expect(entry.change == .put(rendition.name, rendition.record, mediaType: "video/mp4"))
            }
            // New entries come after the old ones.
            try await fixture.put(all[3])
            #expect(await fixture.outbox.drain(within: .seconds(60)))
            #expect(fixture.sent.values.map(\.sequence) == fixture.sent.values.map(\.sequence).sorted())
        }
    }

    @Test func putsOfAFormerProcessMayBeHeldUntilPurgesWereApplied() async throws {
        try await run { fixture in
            let all = try renditions(4)
            let (purged, kept, deleted, new) = (all[0], all[1], all[2], all[3])
            for rendition in [purged, kept] { try await fixture.put(rendition) }
            try fixture.delete(deleted)
            // It waits for the deletion, and is held all the same.
            try await fixture.put(deleted)
            fixture.close()
            try fixture.open(holdsPuts: true)
            fixture.start(concurrency: 1)
            try await fixture.put(new)
            try fixture.delete(purged)
            // What is held does not hold up a stop.
            #expect(await !fixture.outbox.drain(within: .seconds(3600)))
            #expect(fixture.sent.values.map(\.id) == [deleted, new, purged].map(\.name.id))
            fixture.outbox.releasePuts()
            #expect(await fixture.outbox.drain(within: .seconds(3600)))
            #expect(fixture.sent.values.dropFirst(3).map(\.id) == [kept, deleted].map(\.name.id))
        }
    }

    @Test func heldPutsCanBeDroppedForGood() async throws {
        try await run { fixture in
            let all = try renditions(3)
            try await fixture.put(all[0])
            try fixture.delete(all[1])
            fixture.close()
            try fixture.open(holdsPuts: true)
            try await fixture.put(all[2])
            try fixture.ledger.write(.full) { try fixture.outbox.dropHeldPuts(in: $0) }
            try await fixture.waitForEntries(2, bytes: 5000)
            #expect(fixture.statistics.droppedWrites == 1)
            try await waitUntil("the file to go") { try fixture.files() == 1 }
            fixture.close()
            try fixture.open()
            fixture.start(concurrency: 1)
            #expect(await fixture.outbox.drain(within: .seconds(60)))
            #expect(fixture.sent.values.map(\.id) == all[1...].map(\.name.id))
        }
    }

    @Test func debrisOfACrashIsRemoved() async throws {
        try await run { fixture in
            let (a, b) = (try TestRendition(1), try TestRendition(2))
            try await fixture.put(a)
            try await fixture.put(b)
            try await fixture.waitForEntries(2)
            fixture.close()
            // A file without an entry, an entry without a file, and a file of another program.
            let folder = URL(fileURLWithPath: fixture.path)
            try Data([1]).write(to: folder.appendingPathComponent("77"))
            try Data([1]).write(to: folder.appendingPathComponent("notes.txt"))
            try FileManager.default.removeItem(at: folder.appendingPathComponent("1"))
            try fixture.open()
            #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.path).sorted() == ["2", "notes.txt"])
            fixture.start()
            #expect(await fixture.outbox.drain(within: .seconds(60)))
            #expect(fixture.sent.values.map(\.id) == [b.name.id])
            #expect(fixture.statistics.droppedWrites == 1)
        }
    }

    @Test func aFileOnTheSameFileSystemIsLinkedAndOutlivesItsName() async throws {
        try await run { fixture in
            let a = try TestRendition(1)
            let file = try a.file(in: fixture.folder)
            let ledger = fixture.ledger
            _ = await fixture.outbox.put(a.name, file, a.record, mediaType: "video/mp4", within: .zero) { change in
                (try? ledger.write(.normal, change)) != nil
            }
            func inode(_ path: String) throws -> UInt64? {
                try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? UInt64
            }
            let named = fixture.folder.appendingPathComponent("\(a.name)").path
            #expect(try inode("\(fixture.path)/1") == inode(named))
            try FileManager.default.removeItem(atPath: named)
            #expect(FileManager.default.contents(atPath: "\(fixture.path)/1") == Data(a.bytes))
        }
    }

    @Test func aDiskThatTakesNoFilesIsReportedOnceAndDeletionsAreStillSent() async throws {
        try await run { fixture in
            try FileManager.default.removeItem(atPath: fixture.path)
            for seed: UInt64 in 1...3 { #expect(try await !fixture.put(TestRendition(seed), within: .seconds(3600))) }
            #expect(fixture.events.values.count == 1 && fixture.statistics.droppedWrites == 3)
            fixture.start()
            try fixture.delete(TestRendition(1))
            #expect(await fixture.outbox.drain(within: .seconds(60)))
            #expect(fixture.sent.values.count == 1)
        }
    }

    @Test func anEntryWhoseEndCannotBeRecordedIsNotSentAgain() async throws {
        try await run { fixture in
            let gate = AsyncGate()
            fixture.start { _, _ in
                await gate.pass()
                return nil
            }
            try fixture.delete(TestRendition(1))
            try await waitUntil("the request to begin") { gate.count == 1 }
            fixture.ledger.close()
            gate.open()
            try await waitUntil("its end") { fixture.sent.values.count == 1 }
            // The next start sends it again, which does no harm.
            fixture.close()
            #expect(fixture.sent.values.count == 1)
            try fixture.open()
            #expect(fixture.statistics.queuedWrites == 1)
        }
    }

    @Test func anEntryIsKeptUntilItsRequestHasEnded() async throws {
        try await run { fixture in
            let gate = AsyncGate()
            fixture.start { _, _ in
                await gate.pass()
                return nil
            }
            try await fixture.put(TestRendition(1))
            try fixture.delete(TestRendition(2))
            try await waitUntil("both requests to begin") { gate.count == 2 }
            // A crash now leaves what the ledger has.
            try await fixture.waitForEntries(2, bytes: 5000)
            #expect(try fixture.files() == 1)
            gate.open()
            try await fixture.waitForEntries(0)
            try await waitUntil("the file to go") { try fixture.files() == 0 }
        }
    }

    // MARK: Waits

    @Test func aWaitEndsWithTheAttempt() async throws {
        try await run { fixture in
            let failing = try TestRendition(2)
            fixture.start { entry, _ in entry.id == failing.name.id ? .denied(code: "ExpiredToken") : nil }
            #expect(try await fixture.put(TestRendition(1), within: .seconds(3600)))
            #expect(try await !fixture.put(failing, within: .seconds(3600)))
            try await fixture.waitForEntries(1)
        }
    }

    @Test func aPutThatIsSentBeforeItsTransactionReturnsHasBeenSent() async throws {
        try await run { fixture in
            let (a, ledger, outbox) = (try TestRendition(1), fixture.ledger, fixture.outbox)
            fixture.start()
            let isSent = await outbox.put(
                a.name, try a.file(), a.record, mediaType: "video/mp4", within: .seconds(5)
            ) { change in
                guard (try? ledger.write(.normal, change)) != nil else { return false }
                return await outbox.drain(within: .seconds(60))
            }
            #expect(isSent)
        }
    }

    @Test func aWaitForAPutIsNotEndedByAnEarlierOneOfItsName() async throws {
        try await run { fixture in
            let (a, ledger, outbox) = (try TestRendition(1), fixture.ledger, fixture.outbox)
            try await fixture.put(a)
            let isSent = await outbox.put(
                a.name, try a.file(), a.record, mediaType: "video/mp4", within: .seconds(3600)
            ) { change in
                fixture.start { [sent = fixture.sent] _, _ in sent.values.isEmpty ? nil : .denied(code: "ExpiredToken") }
                guard await outbox.drain(within: .seconds(60)) else { return false }
                return (try? ledger.write(.normal, change)) != nil
            }
            #expect(!isSent && fixture.attempts.withLock { $0.count } == 2)
        }
    }

    @Test func aWaitForAPutOfAQueuedNameEndsWithTheQueuedOne() async throws {
        try await run { fixture in
            let (a, ledger, outbox) = (try TestRendition(1), fixture.ledger, fixture.outbox)
            try await fixture.put(a)
            let isSent = await outbox.put(
                a.name, try a.file(), a.record, mediaType: "video/mp4", within: .seconds(5)
            ) { change in
                guard (try? ledger.write(.normal, change)) != nil else { return false }
                fixture.start()
                return await outbox.drain(within: .seconds(60))
            }
            #expect(isSent && fixture.sent.values.count == 1)
        }
    }

    @Test func aWaitForADeletionEndsWithItOrWithoutOne() async throws {
        try await run { fixture in
            let (a, b) = (try TestRendition(1), try TestRendition(2))
            #expect(await fixture.outbox.awaitDeletion(of: a.name.id, within: .seconds(3600)))
            try fixture.delete(a)
            #expect(await !fixture.outbox.awaitDeletion(of: a.name.id, within: .milliseconds(1)))
            fixture.start()
            #expect(await fixture.outbox.awaitDeletion(of: a.name.id, within: .seconds(3600)))
            try fixture.delete(b)
            #expect(await fixture.outbox.awaitDeletion(of: b.name.id, within: .seconds(3600)))
        }
    }

    @Test func aWaitForAPutIsNotEndedByTheDeletionBeforeIt() async throws {
        try await run { fixture in
            let a = try TestRendition(1)
            let gate = AsyncGate()
            fixture.start { entry, _ in
                if entry.isDeletion { await gate.pass() }
                return entry.isDeletion ? nil : .denied(code: "ExpiredToken")
            }
            try fixture.delete(a)
            try await waitUntil("the deletion to begin") { gate.count == 1 }
            let waiting = Task { try await fixture.put(a, within: .seconds(3600)) }
            try await fixture.waitForEntries(2)
            gate.open()
            #expect(try await !waiting.value)
        }
    }

    @Test func aWaitForAPutThatIsDroppedOrWithdrawnEnds() async throws {
        try await run(puts: 1) { fixture in
            let (a, b) = (try TestRendition(1), try TestRendition(2))
            let dropped = Task { try await fixture.put(a, within: .seconds(3600)) }
            try await fixture.waitForEntries(1)
            let withdrawn = Task { try await fixture.put(b, within: .seconds(3600)) }
            #expect(try await !dropped.value)
            try await waitUntil("the other put") { () async throws in
                try fixture.ledger.read { try OutboxTables($0).next(at: 1, limit: 1).first?.id } == b.name.id
            }
            try fixture.delete(b)
            #expect(try await !withdrawn.value)
        }
    }

    @Test func closingEndsAllWaits() async throws {
        try await run { fixture in
            let waiting = Task { try await fixture.put(TestRendition(1), within: .seconds(3600)) }
            try await fixture.waitForEntries(1)
            let draining = Task { await fixture.outbox.drain(within: .seconds(3600)) }
            fixture.outbox.close()
            #expect(try await !waiting.value)
            _ = await draining.value
            #expect(try await !fixture.put(TestRendition(2), within: .seconds(3600)))
        }
    }

    @Test func eachDrainEndsWithItsOwnLimit() async throws {
        try await run { fixture in
            try fixture.delete(TestRendition(1))
            let ends = Recorder<Bool>()
            let draining = Task { ends.add(await fixture.outbox.drain(within: .seconds(3600))) }
            for limit in [Duration.zero, .milliseconds(1)] {
                for _ in 0..<20 { #expect(await !fixture.outbox.drain(within: limit)) }
            }
            #expect(ends.values.isEmpty)
            fixture.start()
            await draining.value
            #expect(ends.values == [true])
        }
    }
}

@Suite("The outbox holds up no entry for the failures of others", .timeLimit(.minutes(10))) struct OutboxPauseTests {
    /// The answer of a store that refuses deletions.
    private static let deletionsRefused: @Sendable (OutboxEntry, Int) async -> StoreError? = { entry, _ in
        entry.isDeletion ? .denied(code: "AccessDenied") : nil
    }

    @Test func noSenderPausesWhileAnEntryWaitsForItsFirstAttempt() async throws {
        let fixture = try OutboxFixture(backoff: OutboxFixture.longPauses)
        defer { fixture.stop() }
        // More than there are senders.
        for seed: UInt64 in 1...4 { try fixture.delete(TestRendition(seed)) }
        for seed: UInt64 in 11...20 { try await fixture.put(TestRendition(seed)) }
        fixture.start(Self.deletionsRefused)
        try await waitUntil("all puts to be sent") { fixture.sent.values.count == 10 }
        try await fixture.waitForEntries(4)
    }

    @Test func refusedDeletionsAreRepeatedAtThePaceOfTheSenders() async throws {
        let fixture = try OutboxFixture(backoff: Backoff(first: .milliseconds(50), longest: .milliseconds(50)))
        defer { fixture.stop() }
        for seed: UInt64 in 1...40 { try fixture.delete(TestRendition(seed)) }
        let start = ContinuousClock.now
        fixture.start(Self.deletionsRefused)
        try await waitUntil("20 repetitions") { fixture.attempts.withLock { $0.values.reduce(0, +) } >= 60 }
        // Each of two senders pauses for 25 ms or more after each of its repetitions.
        #expect(ContinuousClock.now - start >= .milliseconds(200))
    }

    @Test func aDrainTriesRefusedDeletionsOnceAndSendsTheRest() async throws {
        let fixture = try OutboxFixture(backoff: OutboxFixture.longPauses)
        defer { fixture.stop() }
        for seed: UInt64 in 1...5 { try fixture.delete(TestRendition(seed)) }
        // The first waits for the deletion of its name.
        for seed: UInt64 in [1, 11, 12] { try await fixture.put(TestRendition(seed)) }
        // The outbox is drained from now on, so that no attempt precedes it.
        #expect(await !fixture.outbox.drain(within: .milliseconds(1)))
        fixture.start(Self.deletionsRefused)
        #expect(await !fixture.outbox.drain(within: .seconds(3600)))
        #expect(Set(fixture.sent.values.map(\.id)) == [try TestRendition(11).name.id, try TestRendition(12).name.id])
        try await fixture.waitForEntries(6, bytes: 5000)
        // The next drain tries each of them once again, and not the put behind one of them.
        let before = fixture.attempts.withLock { $0 }
        #expect(await !fixture.outbox.drain(within: .seconds(3600)))
        let after = fixture.attempts.withLock { $0 }
        let deletions = before.filter { number, _ in !fixture.sent.values.contains { $0.sequence == number } }
        #expect(deletions.count == 5 && deletions.allSatisfy { after[$0.key] == $0.value + 1 })
    }

    @Test func drainingDoesNotWaitForPauses() async throws {
        let fixture = try OutboxFixture(backoff: OutboxFixture.longPauses)
        defer { fixture.stop() }
        // Refused once. The sender does not pause, because the next entry was not refused.
        fixture.start(concurrency: 1) { entry, number in entry.isDeletion && number == 0 ? .denied(code: "AccessDenied") : nil }
        try await fixture.put(TestRendition(2))
        // Not only until it is sent: its entry must not be the next one below.
        try await fixture.waitForEntries(0)
        try fixture.ledger.write(.normal) { database in
            let tables = OutboxTables(database)
            _ = try tables.addDeletion(of: TestRendition(1).name.id, until: 1 << 53, 100)
            let entry = try #require(try tables.next(at: 1, limit: 1).first)
            #expect(try tables.delay(entry, until: 1 << 60, isRefused: true, isAttempt: true))
        }
        try await fixture.put(TestRendition(3), within: .seconds(3600))
        #expect(fixture.sent.values.count == 2)
        fixture.attempts.withLock { $0[100] = 1 }
        #expect(await fixture.outbox.drain(within: .seconds(3600)))
        #expect(fixture.sent.values.count == 3)
    }

    @Test func anEntryThatFailedIsSentAgainAfterItsPause() async throws {
        let fixture = try OutboxFixture()
        defer { fixture.stop() }
        fixture.start { _, number in number < 3 ? .unreachable(cause: "a test") : nil }
        for seed: UInt64 in 1...3 { try await fixture.put(TestRendition(seed)) }
        try await waitUntil("all to be sent") { fixture.sent.values.count == 3 }
        try await fixture.waitForEntries(0)
    }

    @Test func aSenderThatHasNothingElseToSendWaitsForThePauseOfTheEntry() async throws {
        // That of the sender is shorter.
        let fixture = try OutboxFixture(backoff: Backoff(first: .milliseconds(100), longest: .milliseconds(10)))
        defer { fixture.stop() }
        let start = ContinuousClock.now
        fixture.start(concurrency: 1) { _, number in number == 0 ? .unreachable(cause: "a test") : nil }
        try await fixture.put(TestRendition(1))
        try await waitUntil("the entry to be sent") { fixture.sent.values.count == 1 }
        let time = ContinuousClock.now - start
        #expect(time >= .milliseconds(50) && time < .seconds(20))
    }

    @Test func aDrainOutlastsAnOutage() async throws {
        let fixture = try OutboxFixture()
        defer { fixture.stop() }
        for seed: UInt64 in 1...3 { try await fixture.put(TestRendition(seed)) }
        fixture.start { _, number in number < 3 ? .unreachable(cause: "a test") : nil }
        #expect(await fixture.outbox.drain(within: .seconds(3600)))
        #expect(fixture.sent.values.count == 3)
    }

    @Test func aDeletionIsNeverDiscarded() async throws {
        let fixture = try OutboxFixture()
        defer { fixture.stop() }
        fixture.start { _, number in number < 3 ? .rejected(status: 405, code: "MethodNotAllowed") : nil }
        try fixture.delete(TestRendition(1))
        try await waitUntil("the deletion to be sent") { fixture.sent.values.count == 1 }
        try await fixture.waitForEntries(0)
        #expect(fixture.events.values.isEmpty)
    }

    @Test func theFirstPutThatCanNeverBeSentIsReported() async throws {
        let error = StoreError.rejected(status: 400, code: "EntityTooLarge")
        let fixture = try OutboxFixture()
        defer { fixture.stop() }
        fixture.start { _, _ in error }
        for seed: UInt64 in 1...3 { try await fixture.put(TestRendition(seed)) }
        try await waitUntil("all to be discarded") { fixture.statistics.droppedWrites == 3 }
        #expect(fixture.events.values == [.discarded(error)])
    }
}
