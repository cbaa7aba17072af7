internal import Foundation
internal import Renditions
internal import Glibc
internal import Synchronization
internal import SystemIO

/// What a run has done so far, in a file, so that the next one goes on where it was interrupted.
///
/// A line of JSON for each entry that is done with. Of another list, lines without an entry are left alone. Any thread.
package final class RunJournal: Sendable {
    private let file: Mutex<FileHandle>
    private let path: String
    /// What an earlier run has done, by the entries' identity.
    let known: [String: PrewarmOutcome]

    /// Opens a journal, or begins one.
    ///
    /// - Throws: ``PrewarmRunError``.
    package init(path: String) throws(PrewarmRunError) {
        self.path = path
        var known: [String: PrewarmOutcome] = [:]
        if let text = try? Data(contentsOf: URL(fileURLWithPath: path)) {
            let decoder = JSONDecoder()
            // A line that broke off, when a machine stopped, was not done.
            for line in text.split(separator: UInt8(ascii: "\n")) {
                guard let result = try? decoder.decode(PrewarmResult.self, from: line) else { continue }
                known[result.entry.identity] = result.outcome
            }
        }
        self.known = known
        do {
            let folder = URL(fileURLWithPath: path).deletingLastPathComponent()
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            if !FileManager.default.fileExists(atPath: path) { try Data().write(to: URL(fileURLWithPath: path)) }
            let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path))
            let end = try handle.seekToEnd()
            if end > 0 {
                try handle.seek(toOffset: end - 1)
                // What a run that was cut off left behind must not spoil the next line.
                if try handle.read(upToCount: 1) != Data("\n".utf8) { try handle.write(contentsOf: Data("\n".utf8)) }
            }
            file = Mutex(handle)
        } catch {
            throw PrewarmRunError("The journal \(path) cannot be written: \(error).")
        }
    }

    /// Notes an outcome. Returns at once; the system writes it out.
    func note(_ entry: PrewarmEntry, _ outcome: PrewarmOutcome) throws {
        let line = Data(JSONText.encode(PrewarmResult(entry, outcome)))
        try file.withLock { try $0.write(contentsOf: line) }
    }

    /// Removes the journal of a run that is complete.
    package func remove() {
        unlink(path)
    }
}
