import Foundation
import Glibc
import Media
import SystemIO
import TestSupport
import Testing

@testable import Sandbox

private let rounds = ProcessInfo.processInfo.environment["GIFREEL_MEASURE"].flatMap { Int($0) } ?? 0

/// Measurements without expectations. The variable sets the number of jobs:
/// `GIFREEL_MEASURE=500 swift test -c release -Xswiftc -enable-testing --filter SandboxTests.Measurements`
@Suite("Costs of a worker", .serialized, .enabled(if: rounds > 0))
struct Measurements {
    private func median(_ durations: [Duration]) -> Double {
        durations.sorted()[durations.count / 2] / .microseconds(1)
    }

    /// Runs the same work in this process and in a worker, in turns: with a spare worker that is ready, and back to back.
    @Test(arguments: [true, false]) func costOfAWorker(afterARest: Bool) throws {
        let zygote = try SandboxFixture.zygote()
        let supervisor = JobSupervisor(zygote: zygote)
        for (name, gif) in [
            ("5 frames of 48 × 32", GIFBuilder.animation()),
            ("20 frames of 320 × 240", GIFBuilder.animation(frames: 20, width: 320, height: 240)),
        ] {
            var (inside, outside, difference): ([Duration], [Duration], [Duration]) = ([], [], [])
            let job = SandboxFixture.job()
            for round in 0..<rounds + 10 {
                let input = try SandboxFixture.input(gif)
                let (first, second) = (try SandboxFixture.output(), try SandboxFixture.output())
                let clock = ContinuousClock()
                let direct = try clock.measure {
                    _ = try gif.withUnsafeBytes { try job.transcoder.convert($0, to: first.number) }
                }
                if afterARest {
                    try blockUntil("a warm spare worker") {
                        SandboxFixture.spares(of: zygote.process).contains {
                            (try? SandboxFixture.descriptors(of: $0).count) == 4
                        }
                    }
                }
                let confined = try clock.measure { _ = try supervisor.run(job, input: input, output: second) }
                if round < 10 { continue }
                inside.append(direct)
                outside.append(confined)
                difference.append(confined - direct)
            }
            print(
                "\(name), \(afterARest ? "after a rest" : "without a rest"): in process \(Int(median(inside))) µs, in a worker \(Int(median(outside))) µs;",
                "median of the differences \(Int(median(difference))) µs")
        }
        print("zygote: \(SandboxFixture.status(of: zygote.process, "VmRSS")) resident")
    }
}
