import Foundation
@testable import Media
import SystemIO
import TestSupport
import Testing

@testable import Sandbox

extension SerialTests {
    @Suite("The largest canvas fits into a worker's memory in every format", .timeLimit(.minutes(10)))
    struct LargeCanvasTests {
        /// Small frames on the largest canvas, which is transparent beside them. Those that are restored need a second canvas.
        private static func gif(frames: Int) -> [UInt8] {
            var builder = GIFBuilder(width: 3840, height: 2160)
            for index in 0..<frames {
                builder.add(GIFBuilder.Frame(width: 64, height: 64, color: UInt8(1 + index % 7))) { $0.disposal = 3 }
            }
            return builder.finish()
        }

        private static let formats: [Transcoder] =
            OutputFormat.allCases.map { Transcoder(output: $0, threads: 2) } + [
                Transcoder(options: TranscodeOptions(codec: .av1), threads: 2)
            ]

        @Test(arguments: formats.indices) func itIsConverted(_ index: Int) throws {
            try convert(frames: 3, by: Self.formats[index])
        }

        /// x264 takes many pictures before it returns the first one.
        @Test(arguments: [TranscodeOptions.Tune.film, .screen])
        func aLongerAnimationIsConvertedToH264(_ tune: TranscodeOptions.Tune) throws {
            try convert(frames: 30, by: Transcoder(options: TranscodeOptions(tune: tune), threads: 2))
        }

        private func convert(frames: Int, by transcoder: Transcoder) throws {
            let (output, options) = (transcoder.output, transcoder.options)
            guard LinkedLibraries.present.hasEncoder(output), LinkedLibraries.has(options.codec) else {
                try Test.cancel("The encoder is missing.")
            }
            let zygote = try SandboxFixture.zygote()
            let input = try SandboxFixture.input(Self.gif(frames: frames))
            let job = WorkerJob(
                transcoder: transcoder,
                allowance: WorkerAllowance(cpu: 120).times(output.cost(options), memory: output.traits.memory))
            let result = try JobSupervisor(zygote: zygote).run(job, input: input, output: try SandboxFixture.output()).result
            #expect(result.frames > 0 && result.sourceWidth == 3840, "\(output)")
        }
    }
}
