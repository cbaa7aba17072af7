import Foundation
import Glibc
import TestSupport
import Testing

extension OperationsTests {
    @Suite("Standard descriptors that are closed or full are errors where they are used", .timeLimit(.minutes(10)))
    struct StandardDescriptorTests {
        private let folder: ScratchDirectory

        init() throws {
            folder = try ScratchDirectory()
        }

        /// Starts `gifreel` with redirections of the shell.
        private func start(_ arguments: [String], _ redirections: String) throws -> ChildProcess {
            let script = "exec \"$0\" \"$@\" \(redirections)"
            return try ChildProcess(
                URL(fileURLWithPath: "/bin/sh"), ["-c", script, GifreelProcess.executable.path] + arguments)
        }

        private func writeGIF() throws -> String {
            let path = folder.path("a.gif")
            try Data(GIFBuilder.animation(frames: 3)).write(to: URL(fileURLWithPath: path))
            return path
        }

        @Test func aClosedInputCannotBeRead() throws {
            let outcome = try start(["convert", "-", folder.path("a.mp4")], "<&-").finish()
            #expect(outcome.code == 1 && outcome.log == "-: file_failed: The file cannot be read: Bad file descriptor.\n")
            #expect(folder.names().isEmpty)
        }

        @Test(arguments: ["-", "/dev/stdout"]) func aClosedOutputCannotBeWritten(output: String) throws {
            let outcome = try start(["convert", try writeGIF(), output, "--format", "mp4"], ">&-").finish()
            let name = output == "-" ? "standard output" : output
            #expect(outcome.code == 1, "\(outcome)")
            #expect(outcome.log == "\(name): file_failed: The file cannot be written: Bad file descriptor.\n")
        }

        @Test func aRunWhoseProgressIsNotReadGoesOnToItsEnd() throws {
            let list = try folder.write("list", "no URL\n")
            let arguments = ["prewarm", list, "--journal", folder.path("journal"), "--report", folder.path("report")]
            let settings = ["--set", "cache.dir=\(folder.path("cache"))", "--set", "cache.min_free_bytes=0"]
            let outcome = try start(arguments + settings, "2>/dev/full").finish()
            #expect(outcome.code == 1 && outcome.output.contains("1 of 1 URLs in "), "\(outcome)")
            #expect(try folder.text("report").contains("bad_source_url"))
        }

        @Test func aServerLosesItsLogsOnlyWhenAllDescriptorsAreClosed() throws {
            let portFile = folder.path("port")
            let settings = [
                "server.port=0", "server.port_file=\(portFile)", "cache.dir=\(folder.path("cache"))", "cache.min_free_bytes=0",
            ]
            let server = try start(["serve"] + settings.flatMap { ["--set", $0] }, "<&- >&- 2>&-")
            var port: Int?
            try blockUntil("the port file") {
                port = (try? String(contentsOfFile: portFile, encoding: .utf8)).flatMap {
                    Int($0.trimmingCharacters(in: .newlines))
                }
                return port != nil || !server.isRunning
            }
            var client = try RawHTTPClient(port: try #require(port))
            let answer = try client.request("POST", "/mp4", body: GIFBuilder.animation(frames: 3))
            #expect(answer.status == 200)
            // No file, socket or process has their numbers.
            for (number, device) in [(0, "/dev/null"), (1, "/dev/full"), (2, "/dev/full")] {
                let link = "/proc/\(server.identifier)/fd/\(number)"
                #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == device)
            }
            // A log that is closed at the start loses no lines: it has none.
            let lines = try client.request("GET", "/metrics").text.split(separator: "\n")
            let dropped = lines.filter { $0.hasPrefix("gifreel_log_dropped_lines_total{") }
            #expect(dropped.count == 2 && dropped.allSatisfy { $0.hasSuffix(" 0") }, "\(dropped)")
            try #require(kill(server.identifier, SIGTERM) == 0)
            #expect(try server.finish().code == 0)
        }

        @Test(arguments: [
            "settings", "settings --format man", "serve --check", "sign https://a.test/a.gif --set signing.keys=key", "--help",
            "--version",
        ])
        func aCommandWhoseOutputDoesNotFitFails(_ command: String) throws {
            let outcome = try start(command.split(separator: " ").map(String.init), ">/dev/full").finish()
            #expect(outcome.code == 1, "\(outcome)")
            #expect(outcome.log == "gifreel: Standard output cannot be written: No space left on device.\n")
        }
    }
}
