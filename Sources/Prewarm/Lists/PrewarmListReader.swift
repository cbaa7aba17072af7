internal import Foundation

/// Parses the body of `POST /prewarm`: a JSON list, or one JSON object per line (NDJSON).
package enum PrewarmListReader {
    /// Parses the entries, in order. Invalid URLs and options are not errors here: each fails its own entry.
    ///
    /// - Parameter template: The format and the options that entries omit.
    /// - Throws: ``PrewarmList/Malformed``, which names the malformed line.
    package static func read(
        _ body: [UInt8], limit: Int, template: PrewarmEntry = PrewarmEntry(url: "")
    ) throws(PrewarmList.Malformed) -> [PrewarmEntry] {
        let isList = body.first { $0 > 0x20 && ![0xEF, 0xBB, 0xBF].contains($0) } == UInt8(ascii: "[")
        let objects = isList ? try list(body) : try lines(body)
        let entries = objects.map { $0.entry(template) }
        guard !entries.isEmpty else { throw PrewarmList.Malformed("The list is empty.") }
        guard entries.count <= limit else {
            throw PrewarmList.Malformed("The list has \(entries.count) URLs; the limit is \(limit).")
        }
        return entries
    }

    private static func list(_ body: [UInt8]) throws(PrewarmList.Malformed) -> [ListedEntry] {
        do {
            return try JSONDecoder().decode([ListedEntry].self, from: Data(body))
        } catch {
            throw PrewarmList.Malformed(
                "The list is not a JSON list of objects, each with a url and options that are text or numbers.")
        }
    }

    private static func lines(_ body: [UInt8]) throws(PrewarmList.Malformed) -> [ListedEntry] {
        let decoder = JSONDecoder()
        var entries: [ListedEntry] = []
        for (index, line) in body.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
            guard line.contains(where: { $0 > 0x20 }) else { continue }
            do {
                entries.append(try decoder.decode(ListedEntry.self, from: Data(line)))
            } catch {
                throw PrewarmList.Malformed(
                    "Line \(index + 1) is not a JSON object with a url and options that are text or numbers.")
            }
        }
        return entries
    }
}
