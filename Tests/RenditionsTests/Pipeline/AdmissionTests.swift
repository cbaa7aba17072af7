import Glibc
import Sandbox
import SystemIO
import TestSupport
import Testing

@testable import Fetch
@testable import Renditions
@testable import Store

extension ArrivingSource {
    /// A source whose bytes have all arrived.
    fileprivate convenience init(file: SharedDescriptor, count: Int) {
        self.init()
        complete(
            FetchedSource(
                bytes: file, count: count, sha256: [], validators: SourceValidators(),
                cacheDirectives: CacheDirectives(), duration: .zero))
    }
}

@Suite("Admission bounds the misses in progress") struct AdmissionTests {
    private func origin(_ text: String = "https://a.test/") throws -> Admission.Origin {
        try SourceURL(text).origin
    }

    /// Takes slots until the admission refuses, at most `count`.
    private func fill(
        _ admission: Admission, _ origin: Admission.Origin? = nil, bytes: Int = 1, urgency: Urgency = .visitor,
        client: ClientNetwork? = nil, count: Int
    ) -> [AdmissionSlot] {
        (0..<count).compactMap { _ in try? admission.admit(origin, bytes: bytes, urgency: urgency, client: client) }
    }

    @Test func slotsAreBoundedAndReturnWithTheirHolders() throws {
        let admission = Admission(jobs: 3, bytes: 1000)
        var slots = fill(admission, bytes: 10, count: 3)
        #expect(slots.count == 3 && !admission.hasCapacity)
        #expect(throws: RenditionError.overloaded(cause: nil)) { try admission.admit(nil, bytes: 10, urgency: .visitor) }
        slots.removeLast()
        #expect(admission.hasCapacity && admission.load == (2, 20))
        slots.append(try admission.admit(nil, bytes: 10, urgency: .visitor))
        slots = []
        #expect(admission.load == (0, 0))
    }

    @Test func aSourceCountsWithTheLargestSizeUntilItsSizeIsKnown() throws {
        let admission = Admission(jobs: 100, bytes: 1000)
        let slots = try (1...2).map { try admission.admit(origin("https://\($0).test/"), bytes: 600, urgency: .visitor) }
        // A job that waits for its fetch holds no memory.
        #expect(admission.load == (2, 0))
        #expect(slots[0].beginFetch() && slots[0].beginFetch() && !slots[1].beginFetch())
        #expect(admission.load == (2, 600))
        slots[0].sourceArrived(bytes: 100)
        #expect(slots[1].beginFetch())
        #expect(admission.load == (2, 700))
    }

    @Test func aFetchIsRefusedAtOnceIfTheSourcesInMemoryLeaveNoRoom() throws {
        let admission = Admission(jobs: 100, bytes: 1000)
        let fetching = try admission.admit(origin(), bytes: 900, urgency: .visitor)
        #expect(fetching.beginFetch())
        // What a fetch has reserved is mostly free again soon.
        #expect(throws: Never.self) { try admission.admit(origin(), bytes: 900, urgency: .visitor) }
        fetching.sourceArrived(bytes: 900)
        #expect(throws: RenditionError.overloaded(cause: nil)) { try admission.admit(origin(), bytes: 900, urgency: .visitor) }
        withExtendedLifetime(fetching) {}
    }

    /// The fetches that may begin of as many as have a slot.
    private func begin(
        _ admission: Admission, _ count: Int, bytes: Int, urgency: Urgency = .visitor, client: ClientNetwork? = nil,
        host: (Int) -> String = { "\($0).test" }
    ) throws -> (slots: [AdmissionSlot], begun: Int) {
        let slots = try (0..<count).map {
            try admission.admit(origin("https://\(host($0))/"), bytes: bytes, urgency: urgency, client: client)
        }
        return (slots, slots.filter { $0.beginFetch() }.count)
    }

    @Test func clientsLeaveMemoryForOthers() throws {
        let admission = Admission(jobs: 1000, bytes: 1000)
        let one = try begin(admission, 60, bytes: 20, client: client(1))
        let other = try begin(admission, 12, bytes: 20, client: client(2))
        #expect(one.begun == 38 && other.begun == 9)
        // What the source turns out to need counts from then on.
        one.slots[0].sourceArrived(bytes: 1)
        #expect(admission.load.bytes == 46 * 20 + 1)
        withExtendedLifetime(other) {}
    }

    @Test func clientsLeaveFetchesForOthers() throws {
        let admission = Admission(jobs: 1000, bytes: 1000, fetches: 40)
        let one = try begin(admission, 60, bytes: 1, client: client(1))
        let other = try begin(admission, 5, bytes: 1, client: client(2))
        #expect(one.begun == 30 && other.begun == 5)
        for slot in one.slots { slot.sourceArrived(bytes: 1) }
        #expect(try begin(admission, 30, bytes: 1, client: client(1)).begun == 27)
        withExtendedLifetime(other) {}
    }

    @Test func clientsLeaveSlotsAndFetchesOfAHostForOthers() throws {
        let admission = Admission(jobs: 80, bytes: 1000, fetchesPerHost: 8)
        for _ in 1...2 {
            let one = fill(admission, try origin(), client: try client(1), count: 80)
            let other = fill(admission, try origin(), client: try client(2), count: 80)
            #expect(one.count == 45 && other.count == 15)
            #expect(one.filter { $0.beginFetch() }.count == 6 && other.prefix(2).allSatisfy { $0.beginFetch() })
            let elsewhere = fill(admission, try origin("https://b.test/"), client: try client(1), count: 1)
            #expect(elsewhere.first?.beginFetch() == true)
            // A fetch that ends lets another begin.
            one.first?.sourceArrived(bytes: 1)
            #expect(one.last?.beginFetch() == true)
        }
        #expect(admission.load == (0, 0))
    }

    @Test func clientsLeaveMemoryOfAHostForOthers() throws {
        let admission = Admission(jobs: 1000, bytes: 1000)
        let one = try begin(admission, 40, bytes: 20, client: client(1)) { _ in "a.test" }
        let other = try begin(admission, 40, bytes: 20, client: client(2)) { _ in "a.test" }
        #expect(one.begun == 18 && other.begun == 7)
        withExtendedLifetime((one, other)) {}
    }

    @Test func aFetchBeginsWithinTheShareOfAnyClientThatWaitsForIt() throws {
        let admission = Admission(jobs: 1000, bytes: 1000, fetches: 40)
        let clients = try (1...2).map { try client($0) }
        for _ in 1...2 {
            let one = try begin(admission, 33, bytes: 20, client: clients[0])
            let shared = one.slots[30...]
            #expect(one.begun == 30 && !shared[30].beginFetch(for: [clients[0]]))
            #expect(shared.allSatisfy { $0.beginFetch(for: clients) })
            // They count towards the second client's share.
            #expect(try begin(admission, 12, bytes: 20, client: clients[1]).begun == 5)
            for slot in one.slots { slot.sourceArrived(bytes: 10) }
            #expect(admission.load == (33, 330))
        }
        #expect(admission.load == (0, 0))
    }

    @Test func aHostLeavesHalfOfTheMemoryWhateverItsPorts() throws {
        let admission = Admission(jobs: 1000, bytes: 1000)
        let slow = try begin(admission, 40, bytes: 20) { $0 % 2 == 0 ? "a.test" : "a.test:8443" }
        let other = try begin(admission, 40, bytes: 20) { _ in "b.test" }
        #expect(slow.begun == 25 && other.begun == 25)
        for slot in slow.slots { slot.sourceArrived(bytes: 1) }
        #expect(try begin(admission, 20, bytes: 20) { _ in "a.test" }.begun == 20)
        withExtendedLifetime(other) {}
    }

    @Test func backgroundWorkLeavesHalfOfTheMemoryAndOfTheFetches() throws {
        let admission = Admission(jobs: 1000, bytes: 1000, fetches: 40)
        let background = try begin(admission, 40, bytes: 20, urgency: .prewarm)
        #expect(background.begun == 20)
        for slot in background.slots.prefix(background.begun) { slot.sourceArrived(bytes: 20) }
        let others = try begin(admission, 40, bytes: 20, urgency: .prewarm)
        #expect(others.begun == 5)
    }

    @Test func whatReadersHoldCountsForNoClient() throws {
        let admission = Admission(jobs: 100, bytes: 1000)
        let file = try MemoryFile(name: "test")
        let source = ArrivingSource(file: file.reader, count: 240)
        var slot: AdmissionSlot? = try admission.admit(origin(), bytes: 240, urgency: .visitor, client: client(1))
        #expect(slot?.beginFetch() == true)
        slot?.sourceArrived(bytes: 240)
        slot?.account(for: source)
        slot = nil
        #expect(admission.load == (0, 240))
        #expect(try begin(admission, 60, bytes: 20, client: client(1)).begun == 29)
        withExtendedLifetime(source) {}
    }

    /// A rendition in memory, whose file may have been opened again for reading only.
    private func rendition(bytes: Int, isReopened: Bool) throws -> CachedRendition {
        let directory = try ScratchDirectory()
        defer { withExtendedLifetime(directory) {} }
        let path = directory.path("rendition")
        let number = open(path, O_RDWR | O_CREAT, 0o600)
        try #require(number >= 0 && ftruncate(number, bytes) == 0)
        let file = SharedDescriptor(OwnedDescriptor(taking: number))
        let read = isReopened ? open(path, O_RDONLY) : -1
        let record = ObjectRecord(
            id: try #require(ObjectID(hex: String(repeating: "a", count: 64))), fileExtension: "mp4", length: Int64(bytes),
            content: try #require(ContentDigest(hex: String(repeating: "a", count: 64))), created: 0, facts: [])
        let object = StoredObject(
            record: record, descriptor: read < 0 ? file : SharedDescriptor(OwnedDescriptor(taking: read)), sequence: 0,
            memory: file)
        return CachedRendition(object: object, alias: nil, epoch: Epoch(number: 0, began: 0))
    }

    @Test(arguments: [true, false])
    func aRenditionInMemoryCountsUntilItsReadersEndOrAJobNeedsItsMemory(isReopened: Bool) throws {
        let admission = Admission(jobs: 1, bytes: 1000)
        weak var released: SharedDescriptor?
        do {
            let rendition = try rendition(bytes: 400, isReopened: isReopened)
            try admission.account(for: rendition)
            #expect(admission.load.bytes == 400)
            released = rendition.object.memory
        }
        #expect(released == nil && admission.load.bytes == 0)
        let reader: SharedDescriptor
        do {
            let rendition = try rendition(bytes: 400, isReopened: isReopened)
            try admission.account(for: rendition)
            reader = rendition.descriptor
        }
        _ = try admission.reserve(bytes: 900)
        #expect(try reader.size() == 0)
    }

    @Test func oneSourceIsAlwaysAdmitted() {
        let admission = Admission(jobs: 2, bytes: 10)
        let slots = fill(admission, bytes: 600, count: 2)
        #expect(slots.count == 1)
        withExtendedLifetime(slots) {}
    }

    @Test func backgroundWorkLeavesHalfOfTheSlots() {
        let admission = Admission(jobs: 10, bytes: 1000)
        let background = fill(admission, urgency: .prewarm, count: 10)
        let foreground = fill(admission, urgency: .visitor, count: 10)
        #expect(background.count == 5 && foreground.count == 5)
        withExtendedLifetime((background, foreground)) {}
    }

    private func client(_ number: Int) throws -> ClientNetwork {
        ClientNetwork(try #require(IPAddress("192.0.2.\(number)")))
    }

    @Test func clientsLeaveSlotsForOthers() throws {
        let admission = Admission(jobs: 40, bytes: 1000)
        var slots = try (1...3).map { fill(admission, client: try client($0), count: 40) }
        #expect(slots.map(\.count) == [30, 8, 2])
        // A client that ends jobs may start others.
        slots[0].removeLast(10)
        slots.append(fill(admission, client: try client(4), count: 40))
        #expect(slots[3].count == 8)
        slots = []
        slots.append(fill(admission, client: try client(1), count: 40))
        #expect(slots[0].count == 30)
    }

    @Test func anUnknownClientAndBackgroundWorkHaveNoShareOfAClient() throws {
        let admission = Admission(jobs: 40, bytes: 1000)
        let unknown = fill(admission, count: 40)
        #expect(unknown.count == 40)
        let other = Admission(jobs: 40, bytes: 1000)
        let background = fill(other, urgency: .renewal, client: try client(1), count: 40)
        #expect(background.count == 20)
        withExtendedLifetime((unknown, background)) {}
    }

    @Test func aClientMayUseAllOfAFewSlots() throws {
        let admission = Admission(jobs: 4, bytes: 1000)
        let slots = fill(admission, client: try client(1), count: 10)
        #expect(slots.count == 4)
    }

    @Test func reservedMemoryCountsUntilItsLastReference() throws {
        let admission = Admission(jobs: 4, bytes: 1000)
        let slot = try admission.admit(nil, bytes: 600, urgency: .visitor)
        var memory: AdmittedMemory? = try admission.reserve(bytes: 300)
        #expect(admission.load == (1, 900) && memory != nil)
        #expect(throws: RenditionError.self) { try admission.reserve(bytes: 300) }
        memory = nil
        #expect(admission.load == (1, 600))
        withExtendedLifetime(slot) {}
    }

    @Test func aCostlyJobTakesAsManySlotsAsItCosts() throws {
        let admission = Admission(jobs: 7, bytes: 1000)
        var slots = try (0..<2).map { _ in try admission.admit(origin(), bytes: 1, cost: 3, urgency: .visitor) }
        #expect(admission.load == (6, 0))
        #expect(throws: RenditionError.overloaded(cause: nil)) {
            try admission.admit(nil, bytes: 1, cost: 3, urgency: .visitor)
        }
        slots.append(try admission.admit(nil, bytes: 1, urgency: .visitor))
        #expect(admission.load == (7, 1) && !admission.hasCapacity)
        slots.removeFirst()
        #expect(admission.load == (4, 1))
        slots = []
        #expect(admission.load == (0, 0))
    }

    @Test(arguments: [Urgency.visitor, .prewarm]) func aJobThatCostsMoreThanALimitIsAdmittedAlone(_ urgency: Urgency) throws {
        let admission = Admission(jobs: 2, bytes: 1000)
        var slots = [try admission.admit(origin(), bytes: 1, cost: 3, urgency: urgency)]
        for cost in [1, 3] {
            #expect(throws: RenditionError.overloaded(cause: nil)) {
                try admission.admit(origin(), bytes: 1, cost: cost, urgency: urgency)
            }
        }
        slots = []
        #expect(admission.load == (0, 0) && slots.isEmpty)
    }

    @Test func aSlowOriginLeavesAQuarterOfTheSlots() throws {
        let admission = Admission(jobs: 40, bytes: 1000)
        let slow = fill(admission, try origin(), count: 40)
        #expect(slow.count == 30)
        #expect(throws: Never.self) { try admission.admit(origin("https://b.test/"), bytes: 1, urgency: .visitor) }
        // Fetched sources do not count for their origin any more.
        slow.forEach { $0.sourceArrived(bytes: 1) }
        #expect(throws: Never.self) { try admission.admit(origin(), bytes: 1, urgency: .visitor) }
        withExtendedLifetime(slow) {}
    }

    @Test func aJobWhoseSourceHasArrivedLeavesItsOriginOnce() throws {
        let admission = Admission(jobs: 80, bytes: 1000)
        let slow = fill(admission, try origin(), client: try client(1), count: 30)
        do {
            let others = fill(admission, try origin(), client: try client(1), count: 10)
            #expect(slow.count == 30 && others.count == 10)
            others.forEach { $0.sourceArrived(bytes: 1) }
        }
        // Of the host's slots, 15 are left to the client, and as many more to others.
        let clients = try [1, 2].map { fill(admission, try origin(), client: try client($0), count: 80).count }
        #expect(clients == [15, 30])
        withExtendedLifetime(slow) {}
    }

    @Test func aFileSystemThatDoesNotAnswerLeavesSlotsToOtherDirectories() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(jobs: 16, gates: .init(fetch: gate)) { world async throws in
            @Sendable func failure(_ directory: String, _ number: Int) async throws -> RenditionError? {
                let mount = MountRule(try SourceURL(directory: "/\(directory)/"))
                let source = try mount.source("file:///\(directory)/\(number).gif")
                do throws(RenditionError) {
                    _ = try await world.pipeline.find(RenditionRequest(Rendition(format: .mp4), of: source))
                    return nil
                } catch {
                    return error
                }
            }
            try await withThrowingTaskGroup(of: RenditionError?.self) { group in
                for number in 0..<12 { group.addTask { try await failure("one", number) } }
                try await waitUntil("the fetches that hang") { gate.count == 12 }
                #expect(try await failure("one", 12) == .overloaded(cause: nil))
                group.addTask { try await failure("two", 0) }
                try await waitUntil("the fetch of another directory") { gate.count == 13 }
                gate.open()
                for try await error in group { #expect(error == .fetchFailed(.notFound)) }
            }
        }
    }

    @Test func theMemoryOfAReaderOutlivesItsJob() throws {
        let admission = Admission(jobs: 2, bytes: 1000)
        var slot: AdmissionSlot? = try admission.admit(origin(), bytes: 600, urgency: .visitor)
        slot?.sourceArrived(bytes: 100)
        var memory = slot?.memory
        slot = nil
        #expect(admission.load == (0, 100))
        withExtendedLifetime(memory) {}
        memory = nil
        #expect(admission.load == (0, 0))
    }

    /// A source that readers hold after its job.
    private func sourceOfReaders(_ admission: Admission, bytes: Int) throws -> ArrivingSource {
        let slot = try admission.admit(nil, bytes: bytes, urgency: .visitor)
        let file = try MemoryFile(name: "test")
        let source = ArrivingSource(file: file.reader, count: bytes)
        slot.account(for: source)
        return source
    }

    @Test func whatReadersHoldBeyondAQuarterMakesRoomForJobsTheOldestFirst() throws {
        let admission = Admission(jobs: 100, bytes: 1000)
        var sources = try (0..<4).map { _ in try sourceOfReaders(admission, bytes: 250) }
        #expect(admission.load == (0, 1000))
        let job = try admission.admit(nil, bytes: 400, urgency: .visitor)
        #expect(sources.map(\.isUsable) == [false, false, true, true] && admission.load == (1, 900))
        // The last quarter stays, and nothing is cut off for a job that has no room all the same.
        #expect(throws: RenditionError.overloaded(cause: nil)) { try admission.admit(nil, bytes: 400, urgency: .visitor) }
        #expect(sources.map(\.isUsable) == [false, false, true, true] && admission.load == (1, 900))
        sources = []
        #expect(admission.load == (1, 400))
        withExtendedLifetime(job) {}
    }

    @Test func oneSourceIsAlwaysAdmittedBesideThoseOfReaders() throws {
        let admission = Admission(jobs: 100, bytes: 1000)
        let source = try sourceOfReaders(admission, bytes: 200)
        let job = try admission.admit(nil, bytes: 1000, urgency: .visitor)
        #expect(source.isUsable && admission.load == (1, 1200))
        #expect(throws: RenditionError.overloaded(cause: nil)) { try admission.admit(nil, bytes: 1, urgency: .visitor) }
        withExtendedLifetime((source, job)) {}
    }

    @Test func theReadersOfAJobInProgressAreNotCutOff() throws {
        let admission = Admission(jobs: 100, bytes: 1000)
        let job = try admission.admit(nil, bytes: 900, urgency: .visitor)
        let file = try MemoryFile(name: "test")
        let source = ArrivingSource(file: file.reader, count: 900)
        job.account(for: source)
        #expect(throws: RenditionError.overloaded(cause: nil)) { try admission.admit(nil, bytes: 200, urgency: .visitor) }
        #expect(source.isUsable && admission.load == (1, 900))
        withExtendedLifetime(job) {}
    }

    @Test func theReadersOfASourceAreNotCutOffBeforeItsLastJobHasEnded() throws {
        let admission = Admission(jobs: 100, bytes: 1000)
        let file = try MemoryFile(name: "test")
        let source = ArrivingSource(file: file.reader, count: 400)
        var first: AdmissionSlot? = try admission.admit(nil, bytes: 400, urgency: .visitor)
        first?.account(for: source)
        var second: AdmissionSlot? = try admission.admit(nil, bytes: 400, urgency: .visitor)
        for _ in 0..<2 { second?.account(for: source) }
        // Two jobs of one source account for it once.
        #expect(admission.load == (2, 400))
        first = nil
        #expect(admission.load == (1, 400))
        #expect(throws: RenditionError.overloaded(cause: nil)) { try admission.admit(nil, bytes: 700, urgency: .visitor) }
        #expect(source.isUsable)
        second = nil
        #expect(admission.load == (0, 400))
        let job = try admission.admit(nil, bytes: 700, urgency: .visitor)
        #expect(!source.isUsable && admission.load == (1, 700))
        withExtendedLifetime((first, second, job)) {}
    }

    @Test func aJobThatUsesASourceOfReadersKeepsItFromBeingCutOff() throws {
        let admission = Admission(jobs: 100, bytes: 1000)
        var source: ArrivingSource? = try sourceOfReaders(admission, bytes: 400)
        var job: AdmissionSlot? = try admission.admit(nil, bytes: 400, urgency: .visitor)
        if let source { job?.account(for: source) }
        #expect(admission.load == (1, 400))
        #expect(throws: RenditionError.overloaded(cause: nil)) { try admission.admit(nil, bytes: 700, urgency: .visitor) }
        #expect(source?.isUsable == true)
        job = nil
        #expect(source?.isUsable == true && admission.load == (0, 400))
        source = nil
        #expect(admission.load == (0, 0))
        withExtendedLifetime(job) {}
    }

    @Test func aJobOfASourceThatWasCutOffIsAccountedForByItself() throws {
        let admission = Admission(jobs: 100, bytes: 1000)
        let source = try sourceOfReaders(admission, bytes: 600)
        var job: AdmissionSlot? = try admission.admit(nil, bytes: 700, urgency: .visitor)
        #expect(!source.isUsable)
        job?.account(for: source)
        #expect(admission.load == (1, 700))
        job = nil
        #expect(admission.load == (0, 0))
        withExtendedLifetime(job) {}
    }

    @Test func aJobThatEndsBeforeItsFetchReturnsTheShareOfItsOrigin() throws {
        let admission = Admission(jobs: 40, bytes: 1000)
        for _ in 0..<3 { #expect(fill(admission, try origin(), count: 40).count == 30) }
        #expect(admission.load == (0, 0))
    }

    @Test func smallerLimitsAdmitNothingUntilWorkHasEnded() throws {
        let admission = Admission(jobs: 4, bytes: 1000)
        var slots = fill(admission, count: 4)
        admission.setLimits(jobs: 2, bytes: 1000)
        slots.removeLast(2)
        #expect(!admission.hasCapacity)
        slots.removeLast()
        #expect(admission.hasCapacity)
    }
}
