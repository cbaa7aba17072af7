import Foundation
import Glibc
import TestSupport
import Testing

extension OperationsTests {
    @Suite("A log that cannot be written does not affect answers", .timeLimit(.minutes(10))) struct LogFaultTests {
        private let gif = GIFBuilder.animation(frames: 3)

        /// Uploads that are all misses, each of which logs a line.
        private func makeMisses(_ count: Int, _ server: GifreelProcess) throws {
            for number in 0..<count {
                let body = gif + Array("\(number)".utf8)
                #expect(try server.request("POST", "/mp4", body: body).status == 200)
            }
        }

        private func dropped(_ log: String, _ server: GifreelProcess) throws -> Int {
            let name = "gifreel_log_dropped_lines_total{log=\"\(log)\"} "
            let lines = try server.request("GET", "/metrics").text.split(separator: "\n")
            return try #require(lines.first { $0.hasPrefix(name) }.flatMap { Int($0.dropFirst(name.count)) })
        }

        @Test(arguments: ["text", "json"])
        func aFullDiskLosesLinesOnly(format: String) throws {
            let full = try FileHandle(forWritingTo: URL(fileURLWithPath: "/dev/full"))
            let server = try GifreelProcess(["log.format=\(format)"], standardOutput: full, standardError: full)
            try makeMisses(2, server)
            try blockUntil("dropped lines of both logs") {
                try dropped("service", server) >= 3 && dropped("access", server) >= 2
            }
            #expect(server.terminate() == 0)
        }

        @Test(arguments: ["text", "json"])
        func aClosedPipeLosesLinesOnly(format: String) throws {
            let pipe = Pipe()
            let output = pipe.fileHandleForWriting
            let server = try GifreelProcess(["log.format=\(format)"], standardOutput: output, standardError: output)
            try pipe.fileHandleForReading.close()
            try makeMisses(2, server)
            try blockUntil("dropped lines of both logs") {
                try dropped("service", server) >= 2 && dropped("access", server) >= 2
            }
            #expect(server.terminate() == 0)
        }

        @Test func aReaderThatStallsDelaysNoAnswerAndNoEnd() throws {
            let pipe = Pipe()
            let output = pipe.fileHandleForWriting
            // F_SETPIPE_SZ of fcntl(2), which Glibc's module lacks: one page, which a few lines fill.
            #expect(fcntl(output.fileDescriptor, 1031, 4096) == 4096)
            let server = try GifreelProcess(standardOutput: output, standardError: output)
            try makeMisses(60, server)
            #expect(try server.request("GET", "/metrics").status == 200)
            #expect(server.terminate() == 0)
        }
    }
}
