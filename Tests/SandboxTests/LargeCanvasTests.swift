import Foundation
import Media
import SystemIO
import TestSupport
import Testing

@testable import Sandbox

extension SerialTests {
    @Suite("The largest canvas fits into a worker's memory in every format", .timeLimit(.minutes(5)))
    struct LargeCanvasTests {
        private static func gif(transparent: Bool) -> [UInt8] {
            var builder = GIFBuilder(width: 3840, height: 2160)
            for index in 0..<3 {
                // The pixels that no frame covers are transparent. Frames that are restored need a second canvas.
                let height = transparent ? 2000 : 2160
                builder.add(GIFBuilder.Frame(width: 3840, height: height, color: UInt8(1 + index))) { $0.disposal = 3 }
            }
            return builder.finish()
        }

        private static let formats: [Transcoder] =
            OutputFormat.allCases.map { Transcoder(output: $0, limits: limits, threads: 2) } + [
                Transcoder(options: TranscodeOptions(codec: .av1), limits: limits, threads: 2)
            ]

        /// Blank frames are smaller than real ones.
        private static let limits = MediaLimits(pixelsPerByte: 1 << 20)

        @Test(arguments: formats.indices, [true, false])
        func itIsConverted(_ index: Int, _ isTransparent: Bool) throws {
            let transcoder = Self.formats[index]
            let (output, options) = (transcoder.output, transcoder.options)
            guard LinkedLibraries.present.hasEncoder(output), LinkedLibraries.has(options.codec) else { return }
            let zygote = try SandboxFixture.zygote()
            let input = try SandboxFixture.input(Self.gif(transparent: isTransparent))
            let job = WorkerJob(
                transcoder: transcoder,
                allowance: WorkerJob.Allowance(cpu: 120).times(output.cost(options), memory: output.traits.memory))
            let result = try JobSupervisor(zygote: zygote).run(job, input: input, output: try SandboxFixture.output()).result
            #expect(result.frames > 0 && result.sourceWidth == 3840, "\(output)")
        }
    }
}
