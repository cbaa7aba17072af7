internal import CLinux
internal import Foundation
internal import Glibc
internal import SystemIO

/// Jobs on disk, in `prewarm/` of the cache's directory: one file a job, a line of JSON each for the order, its entries and
/// the outcomes as they come.
///
/// A job is on disk before it is accepted. Outcomes are written as they come without waiting for the disk: one that is lost
/// is found out again, and is a hit then. All calls block; one at a time.
final class PrewarmJournal {
    private struct Head: Codable {
        var id: String
        /// Seconds since 1970.
        var created: Double
        var total: Int
        var retries: Int
        var concurrency: Int
    }

    /// A line after the entries.
    private struct Line: Codable {
        var number: Int?
        var outcome: PrewarmOutcome?
        var cancelled: Bool?
    }

    private let folder: String
    private var files: [String: FileHandle] = [:]

    init(cacheDirectory: String) {
        folder = cacheDirectory + "/prewarm"
    }

    /// The jobs on disk, in the order in which they came. A file that is not whole was never accepted, and is removed.
    func load() -> [PrewarmJob] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        var jobs: [(created: Double, job: PrewarmJob)] = []
        for name in names {
            let path = folder + "/" + name
            guard name.hasSuffix(Self.suffix), let text = try? Data(contentsOf: URL(fileURLWithPath: path)),
                let read = Self.read(text)
            else {
                unlink(path)
                continue
            }
            jobs.append(read)
        }
        return jobs.sorted { $0.created < $1.created }.map(\.job)
    }

    /// Writes a new job down, durably.
    func add(_ order: PrewarmJob.Order) throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let head = Head(
            id: order.id, created: Date().timeIntervalSince1970, total: order.entries.count, retries: order.retries,
            concurrency: order.concurrency)
        var text = Data(JSONText.encode(head))
        for entry in order.entries { text.append(contentsOf: JSONText.encode(entry)) }
        let partial = path(order.id) + ".part"
        try text.write(to: URL(fileURLWithPath: partial))
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: partial))
        try file.seekToEnd()
        try file.synchronize()
        guard rename(partial, path(order.id)) == 0 else { throw SystemError.last("rename") }
        files[order.id] = file
    }

    /// Notes what came of an entry.
    func note(_ number: Int, _ outcome: PrewarmOutcome, of id: String) throws {
        try append(Line(number: number, outcome: outcome), to: id)
    }

    func noteCancelled(_ id: String) throws {
        try append(Line(cancelled: true), to: id)
    }

    /// Lets go of a finished job's file; it stays on disk.
    func close(_ id: String) throws {
        try files.removeValue(forKey: id)?.close()
    }

    func remove(_ id: String) throws {
        try close(id)
        guard unlink(path(id)) == 0 || errno == ENOENT else { throw SystemError.last("unlink") }
    }

    // MARK: Helpers

    private static let suffix = ".ndjson"

    private func path(_ id: String) -> String { folder + "/" + id + Self.suffix }

    private func append(_ line: Line, to id: String) throws {
        let file: FileHandle
        if let open = files[id] {
            file = open
        } else {
            file = try FileHandle(forWritingTo: URL(fileURLWithPath: path(id)))
            try file.seekToEnd()
            files[id] = file
        }
        try file.write(contentsOf: Data(JSONText.encode(line)))
    }

    /// Nil where the order or an entry is missing or not what it should be. Outcomes after a line that broke off are lost.
    private static func read(_ text: Data) -> (created: Double, job: PrewarmJob)? {
        var lines = text.split(separator: UInt8(ascii: "\n")).makeIterator()
        let decoder = JSONDecoder()
        guard let first = lines.next(), let head = try? decoder.decode(Head.self, from: first) else { return nil }
        var entries: [PrewarmEntry] = []
        for _ in 0..<head.total {
            guard let line = lines.next(), let entry = try? decoder.decode(PrewarmEntry.self, from: line) else { return nil }
            entries.append(entry)
        }
        var outcomes: [(Int, PrewarmOutcome)] = []
        var isCancelled = false
        while let line = lines.next(), let read = try? decoder.decode(Line.self, from: line) {
            if let number = read.number, let outcome = read.outcome { outcomes.append((number, outcome)) }
            if read.cancelled == true { isCancelled = true }
        }
        let order = PrewarmJob.Order(
            id: head.id, entries: entries, retries: head.retries, concurrency: head.concurrency)
        return (head.created, PrewarmJob(order, outcomes: outcomes, isCancelled: isCancelled))
    }
}
