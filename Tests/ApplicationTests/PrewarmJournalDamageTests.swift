import Foundation
import TestSupport
import Testing

extension OperationsTests {
    @Suite("Damaged prewarm jobs on disk do not stop a start", .timeLimit(.minutes(10))) struct PrewarmJournalDamageTests {
        private let directory = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString)")
        private static let admin = "Authorization: Bearer secret"

        private func id(_ number: Int) -> String { String(repeating: "0", count: 30) + String(number + 10) }

        /// Writes the file of a job; the lines may name the job's id as `ID`.
        private func write(_ number: Int, _ lines: [String]) throws {
            let folder = directory.appendingPathComponent("cache/prewarm")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let text = lines.map { $0.replacing("ID", with: id(number)) + "\n" }.joined()
            try text.write(to: folder.appendingPathComponent("\(id(number)).ndjson"), atomically: true, encoding: .utf8)
        }

        private func head(id: String = "ID", total: String = "1", retries: String = "2", concurrency: String = "1") -> String {
            #"{"id":"\#(id)","created":1,"total":\#(total),"retries":\#(retries),"concurrency":\#(concurrency)}"#
        }

        @Test func aJobWithADamagedOrderIsDroppedAndLogged() throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let entry = #"{"url":"http://127.0.0.1:9/a.gif"}"#
            let done = #"{"number":0,"outcome":{"result":"hit","bytes":5,"source_bytes":9}}"#
            let damaged: [[String]] = [
                [head(total: "-1"), entry], [head(total: "9223372036854775807"), entry], [head(total: "2"), entry],
                [head(total: "1e300"), entry], [head(total: "0")], [head(retries: "-1"), entry],
                [head(concurrency: "0"), entry], [head(id: "../../else"), entry], [head(), "garbage"], ["garbage", entry], [],
                [head(), #"{"url":7}"#],
            ]
            for (number, lines) in damaged.enumerated() { try write(number, lines) }
            let sound = damaged.count
            try write(sound, [head(), entry, done])
            let server = try GifreelProcess(["admin.token=secret"], directory: directory)
            for number in damaged.indices {
                #expect(try server.request("GET", "/prewarm/\(id(number))", headers: [Self.admin]).status == 404)
                try server.waitForLog("\(id(number)).ndjson")
            }
            let report = try server.request("GET", "/prewarm/\(id(sound))", headers: [Self.admin])
            #expect(report.text.contains(#""state":"done""#) && report.text.contains(#""hits":1"#), "\(report.text)")
            #expect(!server.log.contains(id(sound)))
            let left = try FileManager.default.contentsOfDirectory(atPath: directory.path + "/cache/prewarm")
            #expect(left == ["\(id(sound)).ndjson"])
        }

        /// The entry of an outcome that cannot be used is converted again, which a cached rendition makes a hit.
        @Test(arguments: [
            #"{"number":0,"outcome":{"result":"hit","bytes":-1,"source_bytes":9}}"#,
            #"{"number":0,"outcome":{"result":"hit","bytes":9223372036854775807,"source_bytes":-9223372036854775808}}"#,
            #"{"number":-1,"outcome":{"result":"hit","bytes":1,"source_bytes":9}}"#,
            #"{"number":9223372036854775807,"outcome":{"result":"hit","bytes":1,"source_bytes":9}}"#, "garbage",
        ])
        func anUnusableOutcomeIsIgnored(_ line: String) throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let gif = GIFBuilder.animation(frames: 2)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
            defer { origin.stop() }
            let done = #"{"number":1,"outcome":{"result":"hit","bytes":9007199254740991,"source_bytes":9}}"#
            let last = #"{"number":1,"outcome":{"result":"hit","bytes":5,"source_bytes":9}}"#
            let entries = ["/a.gif", "/b.gif"].map { #"{"url":"\#(origin.url($0))"}"# }
            try write(0, [head(total: "2")] + entries + [line, done, last])
            let server = try GifreelProcess(["admin.token=secret"], directory: directory)
            var report = ""
            try blockUntil("the end of the job: \(report)") {
                report = try server.request("GET", "/prewarm/\(id(0))", headers: [Self.admin]).text
                return report.contains(#""state":"done""#)
            }
            #expect(report.contains(#""hits":1"#) && report.contains(#""new":1"#) && origin.count("/b.gif") == 0)
            try server.waitForLog("\(id(0)).ndjson")
        }
    }
}
