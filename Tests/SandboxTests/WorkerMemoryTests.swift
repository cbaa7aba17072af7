import Foundation
import Glibc
import Media
import SystemIO
import TestSupport
import Testing

@testable import Sandbox

extension SerialTests {
    @Suite("A worker without enough memory reports it and does not crash", .timeLimit(.minutes(10))) struct WorkerMemoryTests {
        /// Frames with a disposal that needs a second canvas, each with a local palette.
        private static let gif: [UInt8] = {
            var builder = GIFBuilder(width: 1200, height: 900)
            for index in 0..<3 {
                let frame = GIFBuilder.Frame(width: 1200, height: 900, color: UInt8(index + 1))
                builder.add(frame, localPalette: GIFBuilder.palette) { $0.disposal = 3 }
            }
            return builder.finish()
        }()

        private func outcome(_ zygote: Zygote, memory: Int, threads: Int) throws -> Result<TranscodeResult, SandboxError> {
            let input = try SandboxFixture.input(Self.gif)
            let output = try SandboxFixture.output()
            var job = SandboxFixture.job(memory: memory)
            job.transcoder.threads = threads
            do throws(SandboxError) {
                return .success(try JobSupervisor(zygote: zygote).run(job, input: input, output: output).result)
            } catch {
                return .failure(error)
            }
        }

        /// Black and white in turn, 3000 times in half a second.
        @Test func flashesOfAFastClipAreCounted() throws {
            let clip = try FFmpeg.make(
                ["-f", "lavfi", "-i", "color=black:s=384x384:r=6000:d=0.5,negate=enable='mod(n,2)'", "-c:v", "libx264"]
                    + ["-preset", "ultrafast", "-pix_fmt", "yuv420p"], "mp4")
            var job = SandboxFixture.job()
            job.transcoder.output = .facts
            job.transcoder.options.facts = .flashes
            let report = try JobSupervisor(zygote: SandboxFixture.zygote()).run(
                job, input: SandboxFixture.input(clip), output: SandboxFixture.output())
            #expect(report.result.frames == 3000)
        }

        @Test(arguments: [1, 2]) func anyMemoryLimitIsEitherEnoughOrReported(_ threads: Int) throws {
            let zygote = try SandboxFixture.zygote()
            var refused = 0
            var memory = 64 << 10
            while memory < 1 << 30 {
                switch try outcome(zygote, memory: memory, threads: threads) {
                case .success(let result): #expect(result.frames == 3)
                case .failure(.rejected(.outOfMemory)): refused += 1
                case .failure(let error): Issue.record("\(error) with \(memory >> 10) KiB")
                }
                memory += memory / 3
            }
            #expect(refused > 10)
            #expect(try outcome(zygote, memory: 512 << 20, threads: threads).get().frames == 3)
        }
    }
}
