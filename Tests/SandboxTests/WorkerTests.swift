import Foundation
import Glibc
import Media
import SystemIO
import TestSupport
import Testing

@testable import Sandbox

extension SerialTests {
    @Suite("A worker converts one source within its limits", .timeLimit(.minutes(10))) struct WorkerTests {
        private func run(_ gif: [UInt8], _ job: WorkerJob, on zygote: Zygote? = nil) throws -> JobSupervisor.Outcome {
            try JobSupervisor(zygote: zygote ?? SandboxFixture.zygote()).run(
                job, input: SandboxFixture.input(gif), output: SandboxFixture.output())
        }

        @Test func aWorkerWritesAnMP4AndReportsItsResources() throws {
            let output = try SandboxFixture.output()
            let (result, _, exit) = try JobSupervisor(zygote: SandboxFixture.zygote()).run(
                SandboxFixture.job(), input: SandboxFixture.input(GIFBuilder.animation(frames: 6)), output: output)
            let bytes = try output.readAll()
            #expect(result.frames == 6 && result.bytes == bytes.count)
            #expect(try MP4Boxes(bytes).durations == Array(repeating: 10, count: 6))
            let cpu = exit.cpuMicroseconds
            #expect(cpu > 0 && cpu < 30_000_000)
        }

        @Test func aWorkerMayHaveTheThreadsOfItsJob() throws {
            var job = SandboxFixture.job()
            job.transcoder.threads = 3
            #expect(try run(GIFBuilder.animation(frames: 12, width: 320, height: 240), job).result.frames == 12)
        }

        /// A worker that shares the machine with others gets one thread, and a filter that allows no other where none is needed. x264 has
        /// a second one for pictures of this size, and the other video encoders find their quality by it.
        @Test(arguments: OutputFormat.allCases)
        func eachOutputConvertsInAWorkerOfOneThread(_ output: OutputFormat) throws {
            let zygote = try SandboxFixture.zygote()
            for codec in output.traits.options.contains(.codec) ? VideoCodec.allCases : [.h264] {
                var job = SandboxFixture.job()
                job.transcoder.output = output
                job.transcoder.options.codec = codec
                job.transcoder.threads = 1
                let result = try run(GIFBuilder.animation(frames: 4, width: 320, height: 240), job, on: zygote).result
                #expect(result.bytes > 0, "\(codec)")
            }
        }

        /// The job is ended before its end, so that the test does not take as long as the conversion.
        @Test func aLongJobReportsItsProgressAFewTimesPerSecond() throws {
            let cancellation = JobCancellation()
            var reports: [FrameProgress] = []
            let began = ContinuousClock.now
            #expect(throws: SandboxError.cancelled) {
                try JobSupervisor(zygote: SandboxFixture.zygote()).run(
                    SandboxFixture.job(wall: 60), input: SandboxFixture.input(SandboxFixture.long),
                    output: SandboxFixture.output(), cancellation: cancellation
                ) {
                    reports.append($0)
                    if reports.count == 5 { cancellation.cancel() }
                }
            }
            #expect(reports.count >= 5)
            #expect(reports.map(\.done) == reports.map(\.done).sorted())
            #expect(reports.allSatisfy { $0.total == 4000 && $0.done > 0 && $0.done <= 4000 })
            // A tenth of a second passes before each report.
            #expect(began.duration(to: .now) >= .milliseconds(100 * reports.count))
        }

        @Test func errorsOfTheGIFAreReported() throws {
            let zygote = try SandboxFixture.zygote()
            let cases: [([UInt8], TranscodeError)] = [
                (Array("hello".utf8), .notAnAnimation), ([], .notAnAnimation), (Array("GIF89a".utf8), .incomplete(.gif)),
                (GIFBuilder(width: 1, height: 1).finish(), .corrupt(.gif, .noFrames)),
                (GIFBuilder(width: 5000, height: 1).finish(), .tooLarge(.side, value: 5000, maximum: 4096)),
            ]
            for (gif, error) in cases {
                #expect(throws: SandboxError.rejected(error)) { try run(gif, SandboxFixture.job(), on: zygote) }
            }
        }

        /// Little CMS asks for the date, for which the C library would open a file.
        @Test func coloursAreConvertedInAConfinedWorker() throws {
            let zygote = try SandboxFixture.zygote()
            let profile = ICCProfile.displayP3.bytes()
            let chunks: [APNGBuilder.Chunk] = [
                .init("iCCP", [65, 0, 0] + APNGBuilder.stored(profile)), .init("gAMA", APNGBuilder.number(100_000)),
                .init("cICP", [12, 13, 0, 1]),
            ]
            for type in [0, 2, 3] {
                for chunk in chunks {
                    let coding = APNGBuilder.Coding(type: type)
                    let palette = type == 3 ? [APNGBuilder.Chunk("PLTE", [1, 2, 3])] : []
                    var png = APNGBuilder(width: 8, height: 8, coding: coding, head: [chunk] + palette)
                    png.add(.init(width: 8, height: 8, samples: Array(repeating: 0, count: 64 * coding.channels)))
                    #expect(try run(png.finish(), SandboxFixture.job(), on: zygote).result.frames == 1)
                }
            }
            var webp = WebPBuilder(width: 8, height: 8, profile: profile)
            webp.add(.init(width: 8, height: 8, word: 0xff12_3456))
            #expect(try run(webp.finish(), SandboxFixture.job(), on: zygote).result.frames == 1)
        }

        /// The size of the canvas decides how much memory a worker commits before it reads the source.
        @Test(arguments: [OutputFormat.mp4, .png])
        func anyCanvasThatAHeaderClaimsIsRejectedByItsSize(_ output: OutputFormat) throws {
            let largest = 0x7fff_ffff
            let png = APNGBuilder(width: largest, height: largest).finish()
            var job = SandboxFixture.job()
            job.transcoder.output = output
            let claimed = job
            #expect(throws: SandboxError.rejected(.tooLarge(.side, value: largest, maximum: 4096))) { try run(png, claimed) }
        }

        @Test func theProcessorTimeLimitEndsTheJob() throws {
            #expect(throws: SandboxError.cpuLimitExceeded) {
                try run(SandboxFixture.long, SandboxFixture.job(cpu: 1, wall: 60))
            }
        }

        @Test func theWallClockLimitEndsTheJobAndItsWorker() throws {
            let zygote = try SandboxFixture.zygote()
            #expect(throws: SandboxError.wallClockTimeout) {
                try run(SandboxFixture.long, SandboxFixture.job(wall: 1), on: zygote)
            }
            try blockUntil("the end of the workers") { SandboxFixture.workers(of: zygote.process).isEmpty }
        }

        @Test func anOutputBeyondItsLimitIsRejectedWithoutACrash() throws {
            let gif = GIFBuilder.noise(frames: 4, width: 128, height: 128)
            var failure: SandboxError?
            do throws(SandboxError) {
                let input = try? SandboxFixture.input(gif)
                let output = try? SandboxFixture.output()
                let zygote = try? SandboxFixture.zygote()
                guard let input, let output, let zygote else { return }
                _ = try JobSupervisor(zygote: zygote).run(SandboxFixture.job(output: 4096), input: input, output: output)
            } catch {
                failure = error
            }
            let limit = MediaLimits.outputBytes
            #expect(failure == .rejected(.tooLarge(.outputBytes, value: limit + 1, maximum: limit)))
        }

        @Test func aResultBeyondTheFileLimitIsMadeSmallerForItsBudget() throws {
            let gif = GIFBuilder.noise(frames: 4, width: 128, height: 128)
            let zygote = try SandboxFixture.zygote()
            func bytes(output limit: Int, maxBytes: Int?) throws -> Int {
                var job = SandboxFixture.job(output: limit)
                (job.transcoder.options.maxBytes, job.transcoder.options.chosenQuality) = (maxBytes, 100)
                return try JobSupervisor(zygote: zygote).run(
                    job, input: try SandboxFixture.input(gif), output: try SandboxFixture.output()
                ).result.bytes
            }
            let best = try bytes(output: 1 << 30, maxBytes: nil)
            #expect(try bytes(output: best - 1, maxBytes: best / 2) <= best / 2)
        }

        @Test func theMemoryLimitEndsTheJobAndTheNextOneSucceeds() throws {
            let zygote = try SandboxFixture.zygote()
            var builder = GIFBuilder(width: 2800, height: 2800)
            builder.add(GIFBuilder.Frame(width: 1, height: 1, color: 2))
            let gif = builder.finish()
            // The canvas alone takes 31 MB.
            #expect(throws: SandboxError.rejected(.outOfMemory)) {
                try run(gif, SandboxFixture.job(memory: 16 << 20), on: zygote)
            }
            #expect(try run(gif, SandboxFixture.job(), on: zygote).result.frames == 1)
        }

        @Test func aWorkerKilledFromOutsideIsNotBlamedOnTheGIFAndTheNextJobSucceeds() throws {
            let zygote = try SandboxFixture.zygote()
            let killer = SystemThread.start(name: "killer") {
                try? blockUntil("a worker") { !SandboxFixture.workers(of: zygote.process).isEmpty }
                for child in SandboxFixture.workers(of: zygote.process) { kill(child, SIGKILL) }
            }
            var failure: (any Error)?
            do {
                _ = try run(SandboxFixture.long, SandboxFixture.job(), on: zygote)
            } catch {
                failure = error
            }
            killer?.join()
            guard case .killed(let exit)? = failure as? SandboxError else {
                Issue.record("\(String(describing: failure))")
                return
            }
            #expect(exit.signal == SIGKILL)
            #expect(try run(GIFBuilder.animation(), SandboxFixture.job(), on: zygote).result.frames == 5)
        }

        @Test func aDeadZygoteIsReplaced() throws {
            let zygote = try SandboxFixture.zygote()
            let first = zygote.process
            kill(first, SIGKILL)
            try blockUntil("the end of the process") { !SandboxFixture.isAlive(first) }
            #expect(try run(GIFBuilder.animation(), SandboxFixture.job(), on: zygote).result.frames == 5)
            #expect(zygote.process != first)
            #expect(!FileManager.default.fileExists(atPath: "/proc/\(first)"), "left in the process table")
        }

        @Test func workersLeaveNoDescriptorsBehind() throws {
            let zygote = try SandboxFixture.zygote()
            func descriptors() throws -> Int {
                try FileManager.default.contentsOfDirectory(atPath: "/proc/\(zygote.process)/fd").count
            }
            _ = try run(GIFBuilder.animation(), SandboxFixture.job(), on: zygote)
            try blockUntil("the end of the workers") { SandboxFixture.workers(of: zygote.process).isEmpty }
            let before = try descriptors()
            for _ in 0..<20 {
                _ = try run(GIFBuilder.animation(frames: 2, width: 16, height: 16), SandboxFixture.job(), on: zygote)
            }
            try blockUntil("the end of the workers") { SandboxFixture.workers(of: zygote.process).isEmpty }
            try blockUntil("the descriptors to be closed") { ((try? descriptors()) ?? .max) <= before }
        }

        @Test func theZygoteEndsWithItsServer() throws {
            var zygote: Zygote? = try SandboxFixture.zygote()
            let process = try #require(zygote).process
            #expect(SandboxFixture.isAlive(process))
            zygote = nil
            try blockUntil("the end of the process") { !SandboxFixture.isAlive(process) }
        }
    }
}
