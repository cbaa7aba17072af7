import Fetch
import Fleet
import Store
import SystemIO
import TestSupport

@testable import Renditions

/// The other nodes of a cluster. They answer with one role, once a test opens a gate.
struct OtherNodes: NodeCoordinator {
    let gate: AsyncGate
    let role: FlightRole

    func join(
        _ key: AliasKey, of source: SourceURL, rejecting rejected: SharedRecord?, failureScope: String
    ) async -> FlightRole {
        await gate.pass()
        return role
    }
}

/// A store that has no rendition and takes none.
struct EmptyTier: SharedTier {
    var answer = SharedLookUp.absent
    /// Passed by each lookup.
    var asked: AsyncGate?
    /// Passed by each rendition that is to be stored.
    var saved: AsyncGate?

    func load(_ id: ObjectID, fileExtension: String, into file: StagedFile, isOnlySource: Bool) async -> SharedLookUp {
        await asked?.pass()
        return answer
    }

    func save(_ rendition: CachedRendition) async -> Bool {
        await saved?.pass()
        return false
    }
}

/// A store that has every object, and sends it when a test opens a gate.
struct FullTier: SharedTier {
    let gate: AsyncGate

    func load(_ id: ObjectID, fileExtension: String, into file: StagedFile, isOnlySource: Bool) async -> SharedLookUp {
        await gate.pass()
        guard (try? DescriptorIO.write([1, 2, 3], to: file.descriptor.number, at: 0)) != nil else { return .unavailable }
        let record = StoredRecord(length: 1, digest: [UInt8](repeating: 0, count: 32), created: 0, facts: [], began: 1)
        return record.map { .found($0) } ?? .absent
    }

    func save(_ rendition: CachedRendition) async -> Bool { false }
}
