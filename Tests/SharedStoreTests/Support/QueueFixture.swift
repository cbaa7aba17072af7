import Foundation

@testable import SharedStore

/// A queue in a directory of its own, and the events that it reports.
final class QueueFixture: Sendable {
    let folder: URL
    let events = Recorder<StoreEvent>()

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-queue-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    var path: String { folder.appendingPathComponent("queue").path }

    func queue(
        puts: Int = 100, bytes: Int = 1 << 30, deletes: Int = 100, holdsPuts: Bool = false
    ) throws -> WriteBehindQueue {
        try WriteBehindQueue(
            path: path, limits: .init(puts: puts, bytes: bytes, deletes: deletes), holdsPuts: holdsPuts
        ) { [events] in events.add($0) }
    }

    /// Occupies the name of a file of the queue.
    func makeDirectory(_ name: String) throws {
        try FileManager.default.createDirectory(atPath: "\(path)/\(name)", withIntermediateDirectories: false)
    }

    func files() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path).filter { $0 != "lock" }.sorted()
    }
}
