import Foundation
import Glibc
import Media
import SystemIO
import TestSupport
import Testing

@testable import Sandbox

extension SerialTests {
    @Suite(.timeLimit(.minutes(2))) struct WorkerTests {
        private func run(_ gif: [UInt8], _ job: WorkerJob, on zygote: Zygote? = nil) throws -> JobSupervisor.Outcome {
            try JobSupervisor(zygote: zygote ?? SandboxFixture.zygote()).run(
                job, input: SandboxFixture.input(gif), output: SandboxFixture.output())
        }

        @Test func aWorkerMakesAnMP4AndTellsWhatItTook() throws {
            let output = try SandboxFixture.output()
            let (result, exit) = try JobSupervisor(zygote: SandboxFixture.zygote()).run(
                SandboxFixture.job(), input: SandboxFixture.input(GIFBuilder.animation(frames: 6)), output: output)
            let bytes = try output.readAll()
            #expect(result.frames == 6 && result.bytes == bytes.count)
            #expect(try MP4Boxes(bytes).durations == Array(repeating: 10, count: 6))
            let cpu = exit.cpuMicroseconds
            #expect(cpu > 0 && cpu < 30_000_000)
        }

        @Test func aWorkerMayHaveThreadsWhereItsJobHas() throws {
            var job = SandboxFixture.job()
            job.transcoder.threads = 3
            #expect(try run(GIFBuilder.animation(frames: 12, width: 320, height: 240), job).result.frames == 12)
        }

        @Test func whatIsWrongWithTheGIFIsTold() throws {
            let zygote = try SandboxFixture.zygote()
            let cases: [([UInt8], TranscodeError)] = [
                (Array("hello".utf8), .notAGIF), ([], .notAGIF), (Array("GIF89a".utf8), .incomplete),
                (GIFBuilder(width: 1, height: 1).finish(), .corrupt(.noFrames)),
                (GIFBuilder(width: 5000, height: 1).finish(), .tooLarge(.side, value: 5000, maximum: 4096)),
            ]
            for (gif, error) in cases {
                #expect(throws: SandboxError.rejected(error)) { try run(gif, SandboxFixture.job(), on: zygote) }
            }
        }

        @Test func tooMuchProcessorTimeEndsTheJob() throws {
            #expect(throws: SandboxError.cpuLimitExceeded) {
                try run(SandboxFixture.long, SandboxFixture.job(cpu: 1, wall: 60))
            }
        }

        @Test func tooMuchTimeByTheClockEndsTheJobAndItsWorker() throws {
            let zygote = try SandboxFixture.zygote()
            #expect(throws: SandboxError.wallClockTimeout) {
                try run(SandboxFixture.long, SandboxFixture.job(wall: 1), on: zygote)
            }
            #expect(SandboxFixture.eventually { SandboxFixture.workers(of: zygote.process).isEmpty })
        }

        @Test func tooLargeAnOutputIsAnErrorAndNotAnEnd() throws {
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
            guard case .rejected(.failed)? = failure else {
                Issue.record("\(String(describing: failure))")
                return
            }
        }

        @Test func tooMuchMemoryEndsTheJobAndTheNextOneIsFine() throws {
            let zygote = try SandboxFixture.zygote()
            var builder = GIFBuilder(width: 2800, height: 2800)
            builder.add(GIFBuilder.Frame(width: 1, height: 1, color: 2))
            let gif = builder.finish()
            // The canvas alone takes 31 MB.
            #expect(throws: SandboxError.self) { try run(gif, SandboxFixture.job(memory: 16 << 20), on: zygote) }
            #expect(try run(gif, SandboxFixture.job(), on: zygote).result.frames == 1)
        }

        @Test func aWorkerKilledFromOutsideIsNotTheFaultOfTheGIFAndTheNextJobIsFine() throws {
            let zygote = try SandboxFixture.zygote()
            let killer = SystemThread.start(name: "killer") {
                _ = SandboxFixture.eventually { !SandboxFixture.workers(of: zygote.process).isEmpty }
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
            #expect(SandboxFixture.eventually { !SandboxFixture.isAlive(first) })
            #expect(try run(GIFBuilder.animation(), SandboxFixture.job(), on: zygote).result.frames == 5)
            #expect(zygote.process != first)
            #expect(!FileManager.default.fileExists(atPath: "/proc/\(first)"), "left in the process table")
        }

        @Test func workersLeaveNothingBehind() throws {
            let zygote = try SandboxFixture.zygote()
            func descriptors() throws -> Int {
                try FileManager.default.contentsOfDirectory(atPath: "/proc/\(zygote.process)/fd").count
            }
            _ = try run(GIFBuilder.animation(), SandboxFixture.job(), on: zygote)
            #expect(SandboxFixture.eventually { SandboxFixture.workers(of: zygote.process).isEmpty })
            let before = try descriptors()
            for _ in 0..<20 {
                _ = try run(GIFBuilder.animation(frames: 2, width: 16, height: 16), SandboxFixture.job(), on: zygote)
            }
            #expect(SandboxFixture.eventually { SandboxFixture.workers(of: zygote.process).isEmpty })
            #expect(SandboxFixture.eventually { ((try? descriptors()) ?? .max) <= before })
        }

        @Test func theZygoteEndsWithItsServer() throws {
            var zygote: Zygote? = try SandboxFixture.zygote()
            let process = try #require(zygote).process
            #expect(SandboxFixture.isAlive(process))
            zygote = nil
            #expect(SandboxFixture.eventually { !SandboxFixture.isAlive(process) })
        }

        @Test func everyMessageSurvivesItsJourney() throws {
            let job = WorkerJob(
                transcoder: Transcoder(
                    output: .webp,
                    options: TranscodeOptions(
                        quality: 33, background: RGB(red: 1, green: 2, blue: 3),
                        size: SizeOptions(width: 4, height: 5, fit: .fill),
                        time: TimeOptions(speed: 6, ceiling: 7, start: 8, end: 9, loops: 10), frame: 11),
                    limits: MediaLimits(side: 1, canvasPixels: 2, totalPixels: 3, pixelsPerByte: 12, frames: 4, duration: 5),
                    threads: 7),
                allowance: WorkerJob.Allowance(cpu: 8, memory: 9, output: 10, wall: 11))
            #expect(WorkerMessage(job).job == job)
            let plain = WorkerJob(transcoder: Transcoder())
            #expect(WorkerMessage(plain).job == plain)
            let errors: [TranscodeError] = [
                .notAGIF, .incomplete, .corrupt(.header), .corrupt(.noCanvas), .tooLarge(.frames, value: 1 << 40, maximum: 9),
                .encoderMissing(.webp), .startPastEnd(start: 5, duration: 3), .failed(.mux, code: -28), .outOfMemory,
            ]
            for error in errors { #expect(WorkerMessage(error).failure == error) }
            for loop in [nil, 0, 7] {
                let result = TranscodeResult(
                    sourceWidth: 1, sourceHeight: 2, width: 3, height: 4, frames: 5, samples: 6, duration: 7, timescale: 300,
                    loopCount: loop, isTransparent: loop == 0, bytes: 8)
                #expect(WorkerMessage(result).result == result)
            }
        }

        @Test func bytesThatAreNoMessageAreNone() {
            for count in [0, 8, WorkerMessage.byteCount - 1, WorkerMessage.byteCount] {
                let bytes = [UInt8](repeating: 0xff, count: count)
                #expect(bytes.withUnsafeBytes { WorkerMessage($0) } == nil)
            }
        }
    }
}
