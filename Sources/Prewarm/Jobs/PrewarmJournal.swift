internal import CLinux
internal import Foundation
internal import Glibc
internal import Renditions
internal import SystemIO

/// Jobs on disk, in `prewarm/` of the cache directory: one file per job, with a line of JSON for the order, for each entry
/// and for each outcome.
///
/// A job is on disk before it is accepted. Outcomes are written without waiting for the disk: after a crash, the entry of a
/// lost outcome is processed again, as a hit. All functions block. Not thread-safe.
package final class PrewarmJournal {
    private struct Head: Codable {
        var id: String
        /// Seconds since 1970.
        var created: Double
        var total: Int
        var retries: Int
        var concurrency: Int
        var callback: String?
    }

    /// A line after the entries.
    private struct Line: Codable {
        var number: Int?
        var outcome: PrewarmOutcome?
        var cancelled: Bool?
        var reported: Bool?
    }

    private let folder: String
    private var files: [String: FileHandle] = [:]

    package init(cacheDirectory: String) {
        folder = cacheDirectory + "/prewarm"
    }

    /// Damage in a job's file.
    struct Damage: Error, Equatable {
        /// The name of the file.
        var file: String
        var cause: String
        /// Whether the whole job is lost. Otherwise single outcomes are, and their entries are pending again.
        var isDropped: Bool
    }

    /// Reads the jobs on disk, in the order of their creation.
    ///
    /// Files that were not complete when a server stopped were never accepted, and are removed. So are files whose order or
    /// entries cannot be read or are out of range: a start never fails for them.
    func load() -> (jobs: [PrewarmJob], damages: [Damage]) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        var jobs: [(created: Double, job: PrewarmJob)] = []
        var damages: [Damage] = []
        for name in names.sorted() {
            let path = folder + "/" + name
            guard name.hasSuffix(Self.suffix) else {
                if name.hasSuffix(Self.partialSuffix) { unlink(path) }
                continue
            }
            do throws(Damage) {
                let read = try Self.read(path, name)
                jobs.append((read.created, read.job))
                if let damage = read.damage { damages.append(damage) }
            } catch {
                damages.append(error)
                unlink(path)
            }
        }
        return (jobs.sorted { $0.created < $1.created }.map(\.job), damages)
    }

    /// Writes a new job durably.
    func create(_ order: PrewarmJob.Order) throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let head = Head(
            id: order.id, created: Date().timeIntervalSince1970, total: order.entries.count, retries: order.retries,
            concurrency: order.concurrency, callback: order.callback)
        var text = Data(JSONText.encode(head))
        for entry in order.entries { text.append(contentsOf: JSONText.encode(entry)) }
        let partial = path(order.id) + Self.partialSuffix
        try text.write(to: URL(fileURLWithPath: partial))
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: partial))
        try file.seekToEnd()
        try file.synchronize()
        guard rename(partial, path(order.id)) == 0 else { throw SystemError.last("rename") }
        files[order.id] = file
    }

    /// Appends the outcome of an entry.
    func note(_ number: Int, _ outcome: PrewarmOutcome, of id: String) throws {
        try append(Line(number: number, outcome: outcome), to: id)
    }

    /// Appends that the job was cancelled.
    func noteCancelled(_ id: String) throws {
        try append(Line(cancelled: true), to: id)
    }

    /// Appends that the callback has got the report.
    func noteReported(_ id: String) throws {
        try append(Line(reported: true), to: id)
        try close(id)
    }

    /// Closes the file of a finished job. The file stays on disk.
    func close(_ id: String) throws {
        try files.removeValue(forKey: id)?.close()
    }

    /// Removes the file of a job. A missing file is no error.
    func remove(_ id: String) throws {
        try close(id)
        guard unlink(path(id)) == 0 || errno == ENOENT else { throw SystemError.last("unlink") }
    }

    // MARK: Helpers

    private static let suffix = ".ndjson"
    private static let partialSuffix = ".part"
    /// The most entries of a job that was written. `prewarm.max_urls` may have been lowered since.
    private static let entryLimit = 1 << 22

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

    /// Reads a job's file.
    ///
    /// Lines of outcomes that cannot be read are ignored: the last one may have been cut off when a machine stopped.
    private static func read(
        _ path: String, _ name: String
    ) throws(Damage) -> (created: Double, job: PrewarmJob, damage: Damage?) {
        func damage(_ cause: String) -> Damage { Damage(file: name, cause: cause, isDropped: true) }
        guard let text = try? Data(contentsOf: URL(fileURLWithPath: path)) else { throw damage("it cannot be read") }
        var lines = text.split(separator: UInt8(ascii: "\n")).makeIterator()
        let decoder = JSONDecoder()
        guard let first = lines.next(), let head = try? decoder.decode(Head.self, from: first) else {
            throw damage("its first line is not an order")
        }
        guard head.id + suffix == name else { throw damage("its order has the id of another job") }
        guard (1...entryLimit).contains(head.total), head.retries >= 0, head.concurrency > 0 else {
            throw damage("its order has a number that is out of range")
        }
        var entries: [PrewarmEntry] = []
        for number in 0..<head.total {
            guard let line = lines.next(), let entry = try? decoder.decode(PrewarmEntry.self, from: line) else {
                throw damage("entry \(number) of \(head.total) is missing or not an entry")
            }
            entries.append(entry)
        }
        var outcomes: [(Int, PrewarmOutcome)] = []
        var (isCancelled, isReported) = (false, false)
        var ignored = 0
        while let line = lines.next() {
            let read = try? decoder.decode(Line.self, from: line)
            if let number = read?.number, let outcome = read?.outcome, entries.indices.contains(number) {
                outcomes.append((number, outcome))
            } else if read?.cancelled == true {
                isCancelled = true
            } else if read?.reported == true {
                isReported = true
            } else {
                ignored += 1
            }
        }
        let order = PrewarmJob.Order(
            id: head.id, entries: entries, retries: head.retries, concurrency: head.concurrency, callback: head.callback)
        return (
            head.created, PrewarmJob(order, outcomes: outcomes, isCancelled: isCancelled, isReported: isReported),
            ignored == 0 ? nil : Damage(file: name, cause: "\(ignored) outcomes cannot be read", isDropped: false)
        )
    }
}
