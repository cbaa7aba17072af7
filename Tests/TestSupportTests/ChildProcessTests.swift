import Foundation
import TestSupport
import Testing

@Suite("Programs that tests run") struct ChildProcessTests {
    @Test func noDescriptorOfAProgramStaysOpen() throws {
        let program = try ChildProcess(URL(fileURLWithPath: "/bin/cat"), [], input: Array("text".utf8))
        #expect(try program.finish().bytes == Array("text".utf8))
        let folder = "/proc/self/fd"
        let targets = try FileManager.default.contentsOfDirectory(atPath: folder).compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")
        }
        #expect(!targets.isEmpty && !targets.contains { $0.contains("/gifreel-run-") })
    }
}
