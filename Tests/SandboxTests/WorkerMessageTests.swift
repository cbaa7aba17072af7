import TestSupport
import Testing

@testable import Media
@testable import Sandbox

@Suite("Messages of workers contain every field of their payload") struct WorkerMessageTests {
    private func received(_ message: WorkerMessage) -> WorkerMessage? {
        message.words.withUnsafeBytes { WorkerMessage($0) }
    }

    /// The stored properties of a value at every depth, by their names.
    private static func leaves(_ value: Any, _ path: String = "") -> [(path: String, value: String)] {
        let mirror = Mirror(reflecting: value)
        switch mirror.displayStyle {
        case .optional: return [(path, "\(value)")]
        case .struct where !mirror.children.isEmpty:
            return mirror.children.flatMap { leaves($0.value, path + "." + ($0.label ?? "")) }
        default: return [(path, "\(value)")]
        }
    }

    private func job(_ numbers: inout SeededNumbers) -> WorkerJob {
        func number() -> Int { Int.random(in: 1...(1 << 40), using: &numbers) }
        func optional() -> Int? { Bool.random(using: &numbers) ? number() : nil }
        func byte() -> UInt8 { UInt8.random(in: 1...254, using: &numbers) }
        var job = WorkerJob(
            transcoder: Transcoder(
                output: OutputFormat.allCases.randomElement(using: &numbers) ?? .mp4,
                options: TranscodeOptions(
                    chosenQuality: number(), background: RGB(red: byte(), green: byte(), blue: byte()),
                    size: SizeOptions(
                        width: optional(), height: optional(),
                        fit: SizeOptions.Fit.allCases.randomElement(using: &numbers) ?? .fill,
                        gravity: Gravity(x: number(), y: number())),
                    time: TimeOptions(speed: number(), ceiling: optional(), start: number(), end: optional(), loops: number()),
                    frame: Bool.random(using: &numbers) ? .auto : .number(number()),
                    codec: VideoCodec.allCases.randomElement(using: &numbers) ?? .av1,
                    preset: TranscodeOptions.Preset.allCases.randomElement(using: &numbers),
                    undither: TranscodeOptions.Undithering.allCases.randomElement(using: &numbers) ?? .never,
                    chroma: TranscodeOptions.Chroma.allCases.randomElement(using: &numbers) ?? .subsampled,
                    bframes: TranscodeOptions.BFrames.allCases.randomElement(using: &numbers) ?? .never, zoom: number(),
                    tune: TranscodeOptions.Tune.allCases.randomElement(using: &numbers) ?? .film, maxBytes: optional()),
                limits: MediaLimits(
                    side: number(), canvasPixels: number(), totalPixels: number(), pixelsPerByte: number(), frames: number(),
                    duration: number(), clipDuration: number(), formats: SourceFormats(rawValue: UInt16(byte()))),
                threads: number()),
            allowance: WorkerAllowance(cpu: number(), memory: number(), output: number(), wall: number()),
            fault: Bool.random(using: &numbers) ? WorkerFault.allCases.randomElement(using: &numbers) : nil)
        job.taskLimit = number()
        job.transcoder.options.facts = Bool.random(using: &numbers) ? .fingerprints : nil
        return job
    }

    private func result(_ numbers: inout SeededNumbers) -> TranscodeResult {
        func number() -> Int { Int.random(in: 1...(1 << 40), using: &numbers) }
        return TranscodeResult(
            sourceWidth: number(), sourceHeight: number(), width: number(), height: number(), frames: number(),
            samples: number(), duration: number(), timescale: number(),
            loopCount: Bool.random(using: &numbers) ? number() : nil,
            sourceFormat: SourceFormat.allCases.randomElement(using: &numbers) ?? .gif,
            isTransparent: Bool.random(using: &numbers), hasAlpha: Bool.random(using: &numbers),
            isBrokenOff: Bool.random(using: &numbers), isUndithered: Bool.random(using: &numbers), bytes: number())
    }

    @Test func jobsAndResultsRoundTripWithAllFields() {
        var numbers = SeededNumbers(seed: 17)
        for _ in 0..<300 {
            let job = job(&numbers)
            #expect(received(.job(job)) == .job(job))
            let result = result(&numbers)
            #expect(received(.result(result)) == .result(result))
        }
    }

    /// A stored property that is not visited keeps its default value on the other side. Every property of these two jobs differs
    /// from the default, so the test finds and names each property that is missing.
    @Test func noPropertyIsMissing() throws {
        var numbers = SeededNumbers(seed: 18)
        var plain = WorkerJob(transcoder: Transcoder(output: .facts))
        plain.transcoder.options.size.fit = .cover
        var seen: Set<String> = []
        for _ in 0..<200 {
            let sent = job(&numbers)
            let back = try #require(received(.job(sent))?.job)
            for ((path, value), (other, original)) in zip(
                Self.leaves(back), zip(Self.leaves(sent), Self.leaves(plain)).map { ($0.0.value, $0.1.value) })
            {
                #expect(value == other, "\(path)")
                if value != original { seen.insert(path) }
            }
        }
        let missing = Set(Self.leaves(plain).map(\.path)).subtracting(seen)
        #expect(missing.isEmpty, "these never differ in the test, so extend it: \(missing)")
        let fields = Set(Self.leaves(result(&numbers)).map(\.path))
        #expect(fields.count == 15, "extend the test by the new field of results: \(fields)")
    }

    /// Every error, one after another. A new case does not compile until it is listed here.
    private func next(after error: TranscodeError?) -> TranscodeError? {
        switch error {
        case nil: .notAnAnimation
        case .notAnAnimation: .still(.webp)
        case .still: .incomplete(.apng)
        case .incomplete: .corrupt(.webp, .noCanvas)
        case .corrupt: .unsupported(.mov, .codec)
        case .unsupported: .refused(.avif)
        case .refused: .tooLarge(.frames, value: 1 << 40, maximum: 9)
        case .tooLarge: .encoderMissing(.webp)
        case .encoderMissing: .codecMissing(.av1)
        case .codecMissing: .failed(.mux, code: -28)
        case .failed: .outOfMemory
        case .outOfMemory: .startPastEnd(start: 500, duration: 300)
        case .startPastEnd: .overBudget(smallest: 4096, maximum: 2048)
        case .overBudget: nil
        }
    }

    @Test func errorsExitsAndConfinementsRoundTrip() {
        var error = next(after: nil)
        while let current = error {
            #expect(received(.failure(current)) == .failure(current))
            error = next(after: current)
        }
        for (code, signal): (Int32?, Int32?) in [(0, nil), (69, nil), (nil, 9)] {
            let exit = WorkerExit(code: code, signal: signal, cpuMicroseconds: 5, peakBytes: 1 << 33)
            #expect(received(.exit(exit)) == .exit(exit))
        }
        let progress = FrameProgress(done: 7, total: 1 << 26)
        #expect(received(.progress(progress)) == .progress(progress))
        for filters in [false, true] {
            let confinement = Confinement(filtersCalls: filters, landlockVersion: 4)
            #expect(received(.ready(confinement)) == .ready(confinement))
        }
    }

    @Test func wordsOutsideTheRangeOfTheirFieldAreRefused() {
        let message = WorkerMessage.job(WorkerJob(transcoder: Transcoder()))
        for word: Int64 in [.min, .max] {
            var refused = 0
            for index in message.words.indices {
                var words = message.words
                words[index] = word
                if words.withUnsafeBytes({ WorkerMessage($0) }) == nil { refused += 1 }
            }
            // Kind, output, three colours, fit, and the flags of optional fields.
            #expect(refused >= 11)
        }
        for error in [TranscodeError.tooLarge(.side, value: -1, maximum: 1), .startPastEnd(start: .min, duration: 1)] {
            #expect(received(.failure(error)) == nil)
        }
        for (done, total) in [(-1, 5), (6, 5), (0, 0), (0, -1), (1, 1 << 26 + 1), (.max, .max), (.min, .max)] {
            #expect(received(.progress(FrameProgress(done: done, total: total))) == nil)
        }
    }

    @Test func otherBytesAreNotAMessage() {
        for count in [0, 8, WorkerMessage.byteCount - 1, WorkerMessage.byteCount] {
            let bytes = [UInt8](repeating: 0xff, count: count)
            #expect(bytes.withUnsafeBytes { WorkerMessage($0) } == nil)
        }
    }
}
