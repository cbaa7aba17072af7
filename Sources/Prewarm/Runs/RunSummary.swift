internal import Fleet

/// The summary that a run prints at its end.
package enum RunSummary {
    private static let rows = 10

    /// The lines of the summary of a run over `count` entries.
    package static func lines(_ results: [PrewarmResult], totals: PrewarmTotals, of count: Int, seconds: Int) -> [String] {
        var lines = [
            "\(totals.done) of \(count) URLs in \(NumberText.clock(seconds)): \(totals.hits) hits, \(totals.new) new, \(totals.failed) failed"
        ]
        if totals.sourceBytes > 0 {
            lines.append(
                "\(NumberText.bytes(totals.sourceBytes)) of GIFs became \(NumberText.bytes(totals.bytes)) (\(NumberText.percent(totals.bytes, of: totals.sourceBytes)))"
            )
        }
        return lines + savings(results) + failures(results)
    }

    private static func savings(_ results: [PrewarmResult]) -> [String] {
        let best = results.filter { $0.outcome.saved > 0 }.sorted { $0.outcome.saved > $1.outcome.saved }.prefix(rows)
        guard !best.isEmpty else { return [] }
        return ["", "Largest savings", row("saved", "GIF", "now", "URL")]
            + best.map {
                row(
                    NumberText.bytes($0.outcome.saved), NumberText.bytes($0.outcome.sourceBytes),
                    NumberText.bytes($0.outcome.bytes),
                    $0.entry.url)
            }
    }

    private static func failures(_ results: [PrewarmResult]) -> [String] {
        let groups = Dictionary(grouping: results.filter { $0.outcome.kind == .failed }) { $0.outcome.code ?? "?" }
        guard !groups.isEmpty else { return [] }
        let width = max(4, groups.keys.map(\.count).max() ?? 0)
        func line(_ count: String, _ code: String, _ example: String) -> String {
            "  \(NumberText.right(count, 7))  \(code)\(String(repeating: " ", count: width - code.count))  \(example)"
        }
        return ["", "Failures by code", line("count", "code", "for example")]
            + groups.sorted { ($0.value.count, $1.key) > ($1.value.count, $0.key) }.map { code, failed in
                let first = failed[0]
                return line(String(failed.count), code, "\(first.entry.url): \(first.outcome.detail ?? "")")
            }
    }

    private static func row(_ saved: String, _ before: String, _ after: String, _ url: String) -> String {
        "  \(NumberText.right(saved, 9))  \(NumberText.right(before, 9))  \(NumberText.right(after, 9))  \(url)"
    }
}

/// Numbers in messages.
package enum NumberText {
    /// A count of bytes with a decimal unit: `812 B`, `1.2 MB`.
    package static func bytes(_ bytes: Int) -> String {
        var value = Double(bytes)
        for unit in ["B", "kB", "MB", "GB"] {
            if value < 999.5 { return unit == "B" ? "\(bytes) B" : "\(oneDecimal(value)) \(unit)" }
            value /= 1000
        }
        return "\(oneDecimal(value)) TB"
    }

    /// A duration: `0:07`, `12:30`, `3:05:00`.
    package static func clock(_ seconds: Int) -> String {
        let (minutes, rest) = (seconds / 60, seconds % 60)
        let tail = rest < 10 ? "0\(rest)" : "\(rest)"
        guard minutes >= 60 else { return "\(minutes):\(tail)" }
        return "\(minutes / 60):\(minutes % 60 < 10 ? "0" : "")\(minutes % 60):\(tail)"
    }

    package static func oneDecimal(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    /// A percentage without decimals; a dash if the whole is 0.
    package static func percent(_ part: Int, of whole: Int) -> String {
        whole > 0 ? "\(Int((Double(part) * 100 / Double(whole)).rounded())) %" : "–"
    }

    static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
