internal import Fleet
internal import SystemIO
internal import Renditions

/// The report of a run for programs: CSV (RFC 4180) if the file's name ends in `.csv`, otherwise JSON.
package enum ReportFile {
    private struct Document: Encodable {
        struct Row: Encodable {
            var url: String
            var format: String
            var options: [String: String]
            var result: String
            var code: String?
            var detail: String?
            var sourceBytes: Int
            var bytes: Int
            var saved: Int
        }

        var total: Int
        var done: Int
        var hits: Int
        var new: Int
        var failed: Int
        var sourceBytes: Int
        var bytes: Int
        var saved: Int
        var seconds: Int
        var results: [Row]
    }

    /// Writes the report, and replaces an existing file.
    ///
    /// - Throws: ``PrewarmRunError`` if the file cannot be written.
    package static func write(
        _ results: [PrewarmResult], totals: PrewarmTotals, of count: Int, seconds: Int, to path: String
    ) throws(PrewarmRunError) {
        let text =
            path.lowercased().hasSuffix(".csv")
            ? csv(results) : json(results, totals, count, seconds)
        try translating(try Files.write(text, to: path)) { (error: FileError) in PrewarmRunError("The report \(error)") }
    }

    private static func rows(_ results: [PrewarmResult]) -> [Document.Row] {
        results.map { result in
            Document.Row(
                url: result.entry.url, format: result.entry.format, options: result.entry.options,
                result: result.outcome.kind.rawValue, code: result.outcome.code, detail: result.outcome.detail,
                sourceBytes: result.outcome.sourceBytes, bytes: result.outcome.bytes, saved: result.outcome.saved)
        }
    }

    private static func json(_ results: [PrewarmResult], _ totals: PrewarmTotals, _ count: Int, _ seconds: Int) -> [UInt8] {
        JSONText.encode(
            Document(
                total: count, done: totals.done, hits: totals.hits, new: totals.new, failed: totals.failed,
                sourceBytes: totals.sourceBytes, bytes: totals.bytes, saved: totals.saved, seconds: seconds,
                results: rows(results)), inSnakeCase: true)
    }

    private static func csv(_ results: [PrewarmResult]) -> [UInt8] {
        var text = "url,format,options,result,code,detail,sourceBytes,bytes,saved\r\n"
        for row in rows(results) {
            let options = row.options.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: ",")
            let fields = [
                row.url, row.format, options, row.result, row.code ?? "", row.detail ?? "", String(row.sourceBytes),
                String(row.bytes), String(row.saved),
            ]
            text += fields.map(quoted).joined(separator: ",") + "\r\n"
        }
        return Array(text.utf8)
    }

    private static func quoted(_ field: String) -> String {
        // A list may contain text that spreadsheets would run as a formula. No URL and no number begins like one.
        let isFormula = field.utf8.first.map { "=+-@".utf8.contains($0) } == true
        let field = isFormula ? "'" + field : field
        guard field.utf8.contains(where: { $0 == 0x22 || $0 == 0x2C || $0 == 0x0A || $0 == 0x0D }) else { return field }
        return "\"" + field.replacing("\"", with: "\"\"") + "\""
    }
}
