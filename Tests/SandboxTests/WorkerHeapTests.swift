import Foundation
import Glibc
import Media
import SystemIO
import TestSupport
import Testing

@testable import Sandbox

extension SerialTests {
    @Suite("A worker's heap is committed before its job, by the size of the video") struct WorkerHeapTests {
        private static let canvas: [UInt8] = {
            var builder = GIFBuilder(width: 600, height: 450)
            builder.add(GIFBuilder.Frame(width: 600, height: 450, color: 1))
            return builder.finish()
        }()

        /// Bytes of memory of a worker that has not begun to convert.
        private func memory(_ change: (inout Transcoder) -> Void = { _ in }) throws -> Int {
            let zygote = try SandboxFixture.zygote()
            var job = SandboxFixture.job(wall: 60)
            job.fault = .hang
            change(&job.transcoder)
            let (input, output) = (try SandboxFixture.input(Self.canvas), try SandboxFixture.output())
            let cancellation = JobCancellation()
            let hanging = job
            let thread = SystemThread.start(name: "job") {
                _ = try? JobSupervisor(zygote: zygote).run(hanging, input: input, output: output, cancellation: cancellation)
            }
            defer {
                cancellation.cancel()
                thread?.join()
            }
            var worker: Int32 = 0
            try blockUntil("a worker that is confined") {
                worker = SandboxFixture.workers(of: zygote.process).first ?? 0
                // It commits its heap before it limits its descriptors.
                let limits = (try? String(contentsOfFile: "/proc/\(worker)/limits", encoding: .utf8)) ?? ""
                let files = limits.split(separator: "\n").first { $0.hasPrefix("Max open files") }
                return files?.split(separator: " ")[3] == "6"
            }
            let kilobytes = SandboxFixture.status(of: worker, "RssAnon").split(separator: " ").first
            return try #require(kilobytes.flatMap { Int($0) }) << 10
        }

        @Test func aVideoOfTheCanvasHasItsHeapCommittedAndASmallerOneAndAPosterHaveNot() throws {
            let whole = try memory()
            let scaled = try memory { $0.options.size.width = 100 }
            let poster = try memory { $0.output = .png }
            // 50 bytes per pixel, in whole pages of 2 MB.
            let committed = 600 * 450 * 50
            #expect(whole - scaled >= committed - 4 << 20)
            #expect(whole - poster >= committed - 4 << 20)
        }
    }
}
