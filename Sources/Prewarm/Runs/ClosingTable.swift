/// What a run came to, for people.
package enum ClosingTable {
    /// Rows of each part.
    private static let rows = 10

    package static func lines(_ results: [PrewarmResult], totals: PrewarmTotals, of count: Int, seconds: Int) -> [String] {
        var lines = [
            "\(totals.done) of \(count) URLs in \(ByteText.clock(seconds)): \(totals.hits) hits, \(totals.new) new, \(totals.failed) failed"
        ]
        if totals.sourceBytes > 0 {
            lines.append(
                "\(ByteText.short(totals.sourceBytes)) of GIFs became \(ByteText.short(totals.bytes)): \(ByteText.short(totals.saved)) saved (\(ByteText.percent(totals.saved, of: totals.sourceBytes)))"
            )
        }
        return lines + savings(results) + failures(results)
    }

    private static func savings(_ results: [PrewarmResult]) -> [String] {
        let best = results.filter { $0.outcome.saved > 0 }.sorted { $0.outcome.saved > $1.outcome.saved }.prefix(rows)
        guard !best.isEmpty else { return [] }
        return ["", "Biggest savings", row("saved", "GIF", "now", "URL")]
            + best.map {
                row(
                    ByteText.short($0.outcome.saved), ByteText.short($0.outcome.sourceBytes), ByteText.short($0.outcome.bytes),
                    $0.entry.url)
            }
    }

    private static func failures(_ results: [PrewarmResult]) -> [String] {
        let groups = Dictionary(grouping: results.filter { $0.outcome.kind == .failed }) { $0.outcome.code ?? "?" }
        guard !groups.isEmpty else { return [] }
        let width = max(4, groups.keys.map(\.count).max() ?? 0)
        func line(_ count: String, _ code: String, _ example: String) -> String {
            "  \(ByteText.right(count, 7))  \(code)\(String(repeating: " ", count: width - code.count))  \(example)"
        }
        return ["", "Failures by code", line("count", "code", "for example")]
            + groups.sorted { ($0.value.count, $1.key) > ($1.value.count, $0.key) }.map { code, failed in
                let first = failed[0]
                return line(String(failed.count), code, "\(first.entry.url): \(first.outcome.detail ?? "")")
            }
    }

    private static func row(_ saved: String, _ before: String, _ after: String, _ url: String) -> String {
        "  \(ByteText.right(saved, 9))  \(ByteText.right(before, 9))  \(ByteText.right(after, 9))  \(url)"
    }
}
