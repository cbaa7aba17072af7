import Foundation
import TestSupport
import Testing

@Suite("Commands for operators", .timeLimit(.minutes(10))) struct OperatorCommandTests {
    // MARK: explain

    @Test func explainSaysWhyASourceIsNotConverted() throws {
        let gif = GIFBuilder.animation()
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }, "/half.gif": { _ in .ok(Array(gif.prefix(60))) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["admin.token=secret"])
        func explain(_ arguments: String...) throws -> ChildProcess.Outcome {
            try GifreelCommandLine.run(
                ["explain", "--server", "http://127.0.0.1:\(server.port)"] + arguments,
                environment: ["GIFREEL_ADMIN_TOKEN": "secret"])
        }
        let first = try explain(origin.url("/a.gif"))
        #expect(first.code == 0 && first.output.contains("  stored   nothing\n"), "\(first)")
        #expect(first.output.contains("  now      A request has the source fetched and the rendition produced.\n"))
        let tried = try explain("--fetch", origin.url("/a.gif"))
        #expect(tried.code == 0 && tried.output.contains("  tried    gif of \(gif.count) bytes to "), "\(tried)")
        #expect(try server.mp4(origin.url("/a.gif")).status == 200 && server.mp4(origin.url("/half.gif")).status == 422)
        let stored = try explain("/mp4/" + origin.url("/a.gif"))
        #expect(stored.code == 0 && stored.output.contains("  stored   mp4: "), "\(stored)")
        let failed = try explain(origin.url("/half.gif"))
        #expect(
            failed.code == 1 && failed.output.contains(#/failed   mp4, \d+ s ago, tried again in \d+ s: 422 corrupt_gif: /#),
            "\(failed)")
        let refused = try explain("http://127.0.0.1:1/a.gif", "--json")
        #expect(refused.output.hasPrefix("{\"answer\":\""), "\(refused)")
        #expect(try explain("nonsense").log.contains("bad_source_url"))
        #expect(try explain().code == 64)
    }

    // MARK: serve --check --changed

    @Test func onlyChangedSettingsArePrinted() throws {
        let outcome = try GifreelCommandLine.run(["serve", "--check", "--changed", "--set", "cache.max_bytes=1GiB"])
        #expect(outcome.code == 0, "\(outcome)")
        #expect(outcome.output.contains("cache.max_bytes: 1GiB  # --set; default 10GiB\n"), "\(outcome)")
        #expect(!outcome.output.contains("server.port:"))
        #expect(try GifreelCommandLine.run(["serve", "--changed"]).code == 64)
    }
}
