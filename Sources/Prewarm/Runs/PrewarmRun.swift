package import Fleet
internal import Foundation
package import Renditions
internal import Synchronization
internal import SystemIO

/// A run over a list of entries: outcomes of an earlier run, new outcomes, and their sums. Thread-safe.
package final class PrewarmRun: Sendable {
    private struct State {
        var outcomes: [PrewarmOutcome?]
        var totals = PrewarmTotals()
        var journalError: String?
    }

    package let entries: [PrewarmEntry]
    /// The number of entries that an earlier run finished.
    let resumed: Int
    private let journal: RunJournal?
    private let defaults: RenditionDefaults?
    private let state: Mutex<State>

    /// - Parameters:
    ///   - journal: Receives new outcomes, and may hold outcomes of an earlier run.
    ///   - defaults: The defaults for options that entries omit; nil if they are unknown.
    package init(
        _ entries: [PrewarmEntry], journal: RunJournal?, defaults: RenditionDefaults? = RenditionDefaults()
    ) {
        self.entries = entries
        self.journal = journal
        self.defaults = defaults
        var state = State(outcomes: Array(repeating: nil, count: entries.count))
        if let known = journal?.known, !known.isEmpty {
            for (index, entry) in entries.enumerated() {
                guard let outcome = known[entry.identity(defaults)] else { continue }
                state.outcomes[index] = outcome
                state.totals.add(outcome)
            }
        }
        resumed = state.totals.done
        self.state = Mutex(state)
    }

    package var totals: PrewarmTotals { state.withLock { $0.totals } }

    /// The last error of a write to the journal; nil if the journal is complete.
    package var journalError: String? { state.withLock { $0.journalError } }

    package var pending: [Int] { state.withLock { state in entries.indices.filter { state.outcomes[$0] == nil } } }

    /// The finished entries in the order of the list.
    package var results: [PrewarmResult] {
        state.withLock { state in
            entries.indices.compactMap { index in
                state.outcomes[index].map { PrewarmResult(entry: entries[index], outcome: $0) }
            }
        }
    }

    /// Records the outcome of an entry. Further outcomes of the same entry are ignored.
    package func finish(_ number: Int, _ outcome: PrewarmOutcome) {
        let isFirst = state.withLock { state in
            guard state.outcomes[number] == nil else { return false }
            state.outcomes[number] = outcome
            state.totals.add(outcome)
            return true
        }
        guard isFirst, let journal else { return }
        do throws(FileError) {
            try journal.append(entries[number].identity(defaults), outcome)
        } catch {
            state.withLock { $0.journalError = error.description }
        }
    }
}

/// The outcomes of a run in a file, from which the next run continues.
///
/// The file has one line of JSON per finished entry. Outcomes of entries that are not in the list are ignored. Thread-safe.
package final class RunJournal: Sendable {
    private struct Line: Codable {
        let identity: String
        let outcome: PrewarmOutcome
    }

    private let file: Mutex<AppendedFile>
    private let path: String
    /// Outcomes of earlier runs by ``PrewarmEntry/identity(_:)``.
    fileprivate let known: [String: PrewarmOutcome]

    /// Opens the journal, and creates it if there is none.
    ///
    /// - Throws: ``PrewarmRunError`` if it cannot be written.
    package init(path: String) throws(PrewarmRunError) {
        self.path = path
        var known: [String: PrewarmOutcome] = [:]
        if let text = try? Data(contentsOf: URL(fileURLWithPath: path)) {
            let decoder = JSONDecoder()
            // Entries whose lines were cut off by a crash, or have values out of range, count as unfinished.
            for line in text.split(separator: UInt8(ascii: "\n")) {
                if let line = try? decoder.decode(Line.self, from: line) { known[line.identity] = line.outcome }
            }
        }
        self.known = known
        do throws(FileError) {
            try Files.createDirectory(Files.directory(of: path))
            let file = try AppendedFile(path: path)
            // Terminates a line that was cut off, so that the next line does not continue it.
            if let last = file.lastByte, last != UInt8(ascii: "\n") { try file.append([UInt8(ascii: "\n")]) }
            self.file = Mutex(file)
        } catch {
            throw PrewarmRunError("The journal cannot be opened. \(error)")
        }
    }

    /// Appends an outcome, without waiting for the disk.
    fileprivate func append(_ identity: String, _ outcome: PrewarmOutcome) throws(FileError) {
        let line = JSONText.encode(Line(identity: identity, outcome: outcome))
        try file.withLock { (file) throws(FileError) in try file.append(Array(line)) }
    }

    /// Removes the journal, or empties it if its path names a link; a device, such as `/dev/null`, stays. The next run of the same
    /// list then processes every entry.
    package func remove() {
        var status = stat()
        if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG { unlink(path) } else { truncate(path, 0) }
    }
}

/// A finished entry.
package struct PrewarmResult: Sendable, Hashable {
    package let entry: PrewarmEntry
    package let outcome: PrewarmOutcome
}

package struct PrewarmTotals: Sendable, Hashable {
    package private(set) var hits = 0
    package private(set) var new = 0
    package private(set) var failed = 0
    /// Bytes of the renditions that are in the cache.
    package private(set) var bytes = 0
    package private(set) var sourceBytes = 0
    /// The bytes by which the renditions are smaller than their sources.
    package private(set) var saved = 0

    /// The number of finished entries, failures included.
    package var done: Int { hits + new + failed }

    package mutating func add(_ outcome: PrewarmOutcome) {
        switch outcome.kind {
        case .hit: hits += 1
        case .new: new += 1
        case .failed: failed += 1
        }
        bytes += outcome.bytes
        sourceBytes += outcome.sourceBytes
        saved += outcome.saved
    }
}
