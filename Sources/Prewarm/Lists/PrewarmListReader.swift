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
        // Counted first, because decoding takes far more time and memory.
        let count = isList ? objectCount(body) : lineCount(body)
        guard count <= limit else { throw PrewarmList.Malformed("The list has \(count) URLs; the limit is \(limit).") }
        let entries = try (isList ? list(body) : lines(body)).map { $0.entry(template) }
        guard !entries.isEmpty else { throw PrewarmList.Malformed("The list is empty.") }
        return entries
    }

    /// The number of objects in a JSON list whose objects contain no others.
    private static func objectCount(_ body: [UInt8]) -> Int {
        var (count, isText, isEscaped) = (0, false, false)
        for byte in body {
            switch byte {
            case _ where isEscaped: isEscaped = false
            case UInt8(ascii: "\\"): isEscaped = isText
            case UInt8(ascii: "\""): isText.toggle()
            case UInt8(ascii: "{") where !isText: count += 1
            default: break
            }
        }
        return count
    }

    private static func lineCount(_ body: [UInt8]) -> Int {
        var (count, isBlank) = (0, true)
        for byte in body {
            if byte == UInt8(ascii: "\n") {
                isBlank = true
            } else if byte > 0x20, isBlank {
                isBlank = false
                count += 1
            }
        }
        return count
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
        var (rest, number) = (body[...], 0)
        while !rest.isEmpty {
            let line = rest.prefix { $0 != UInt8(ascii: "\n") }
            rest = rest.dropFirst(line.count + 1)
            number += 1
            guard line.contains(where: { $0 > 0x20 }) else { continue }
            do {
                entries.append(try decoder.decode(ListedEntry.self, from: Data(line)))
            } catch {
                throw PrewarmList.Malformed(
                    "Line \(number) is not a JSON object with a url and options that are text or numbers.")
            }
        }
        return entries
    }
}
