import Foundation
import TestSupport
import Testing

@testable import Media

/// Decoding on a thread of its own gives what decoding in turns gives.
@Suite("Samples from a thread equal those without one")
struct SampleThreadTests {
    /// What came of a source: each sample's time and all of its picture, and how it ended.
    private struct Outcome: Equatable {
        var times: [Int] = []
        var pictures: [[UInt8]] = []
        var frames = 0
        var end = 0
        var error: TranscodeError?
    }

    private static let options: [TranscodeOptions] = {
        var scaled = TranscodeOptions()
        scaled.size = SizeOptions(width: 5, height: nil)
        var thinned = TranscodeOptions()
        thinned.time.ceiling = 5_000
        thinned.time.start = 3
        return [TranscodeOptions(), scaled, thinned]
    }()

    private func outcome(
        of gif: [UInt8], _ options: TranscodeOptions, isThreaded: Bool, stopAfter limit: Int = .max
    ) throws -> Outcome {
        try gif.withUnsafeBytes { bytes in
            let source = try SampleSource(ScannedSource<GIFReader>(Transcoder(options: options), bytes))
            let luma = try SamplePlane(width: source.width, height: source.height)
            let cb = try SamplePlane(width: source.width / 2, height: source.height / 2)
            let cr = try SamplePlane(width: source.width / 2, height: source.height / 2)
            let target = FramePlanes(
                luma: luma.samples, cb: cb.samples, cr: cr.samples, lumaStride: luma.stride, cbStride: cb.stride,
                crStride: cr.stride)
            let thread = isThreaded ? SampleThread(source) : nil
            #expect(!isThreaded || thread != nil)
            defer { thread?.stop() }
            var outcome = Outcome()
            do throws(TranscodeError) {
                while outcome.times.count < limit {
                    let next =
                        if let thread { try thread.next(into: target) } else {
                            try source.next { () throws(TranscodeError) in target }
                        }
                    guard let sample = next else { break }
                    outcome.times.append(sample.time)
                    outcome.pictures.append(samples(luma) + samples(cb) + samples(cr))
                }
            } catch {
                outcome.error = error
            }
            thread?.stop()
            if limit == .max { (outcome.frames, outcome.end) = (source.pictures.frames, source.pictures.end) }
            return outcome
        }
    }

    private func samples(_ plane: borrowing SamplePlane) -> [UInt8] {
        (0..<plane.height).flatMap { Array(UnsafeBufferPointer(start: plane.row($0), count: plane.width)) }
    }

    @Test func picturesTimesAndErrorsAreThoseOfDecodingInTurns() throws {
        var samples = 0
        for gif in GIFSeeds.all + [
            GIFBuilder.animation(frames: 40, width: 33, height: 17), GIFBuilder.noise(frames: 9, width: 30, height: 31),
        ] {
            for options in Self.options {
                guard let expected = try? outcome(of: gif, options, isThreaded: false) else { continue }
                for _ in 0..<3 { #expect(try outcome(of: gif, options, isThreaded: true) == expected) }
                samples += expected.times.count
            }
        }
        #expect(samples > 150)
    }

    @Test func aThreadIsStoppedWithSamplesYetToCome() throws {
        let gif = GIFBuilder.animation(frames: 40, width: 33, height: 17)
        for limit in 0..<5 {
            let first = try outcome(of: gif, TranscodeOptions(), isThreaded: true, stopAfter: limit)
            #expect(first.times.count == limit)
        }
    }

    @Test func aThreadEndsWhereTheOutputTakesNothing() {
        let descriptor = open("/dev/full", O_RDWR)
        defer { close(descriptor) }
        #expect(throws: TranscodeError.self) {
            try GIFBuilder.noise(frames: 30, width: 200, height: 200).withUnsafeBytes {
                try Transcoder(threads: 2).convert($0, to: descriptor)
            }
        }
    }
}
