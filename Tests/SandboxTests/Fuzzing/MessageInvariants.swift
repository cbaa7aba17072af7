#if !FUZZ
    @testable import Media
    @testable import Sandbox
#endif

/// What must hold of the messages between the server, the zygote and a worker, whatever words they have. The fuzzer looks for words
/// for which it does not hold.
enum MessageInvariants {
    /// The first invariant that does not hold, in words; nil if all do.
    ///
    /// - Parameter bytes: The words of a message, of which those at the end may be missing. They are read as they are, and with zeros
    ///   in place of the missing ones.
    static func violation(_ bytes: UnsafeRawBufferPointer) -> String? {
        if bytes.count != WorkerMessage.byteCount, WorkerMessage(bytes) != nil { return "a message of \(bytes.count) bytes" }
        var padded = [UInt8](bytes.prefix(WorkerMessage.byteCount))
        padded += Array(repeating: 0, count: WorkerMessage.byteCount - padded.count)
        guard let message = padded.withUnsafeBytes({ WorkerMessage($0) }) else { return nil }
        let words = message.words
        guard words.count == WorkerMessage.wordCount else { return "\(words.count) words" }
        guard let again = words.withUnsafeBytes({ WorkerMessage($0) }) else { return "its own words are refused: \(message)" }
        guard again == message else { return "its own words are another message: \(message) \(again)" }
        guard words.first == padded.withUnsafeBytes({ $0.load(as: Int64.self) }) else { return "another kind" }
        return content(message)
    }

    /// A message has one payload, and what the server reads without a further check is in range.
    private static func content(_ message: WorkerMessage) -> String? {
        let payloads: [Any?] = [
            message.job, message.result, message.failure, message.progress, message.exit, message.confinement,
        ]
        guard payloads.count(where: { $0 != nil }) == 1 else { return "not one payload" }
        if let progress = message.progress, !progress.isInRange { return "progress out of range: \(progress)" }
        switch message.failure {
        case .tooLarge(_, let value, let maximum), .overBudget(let value, let maximum):
            return value >= 0 && maximum >= 0 ? nil : "a negative size"
        case .startPastEnd(let start, let duration):
            return FactRange.duration.contains(start) && FactRange.duration.contains(duration) ? nil : "a wrong duration"
        default: return nil
        }
    }
}

/// The first inputs of the fuzzer: a message of each kind, in both directions.
enum MessageSeeds {
    static let all: [[UInt8]] = messages.map { $0.words.withUnsafeBytes { [UInt8]($0) } }

    private static var messages: [WorkerMessage] {
        var job = WorkerJob(transcoder: Transcoder(output: .mp4))
        job.transcoder.options.size = SizeOptions(width: 480, height: nil, fit: .cover)
        job.transcoder.options.time = TimeOptions(speed: 2000, ceiling: 25_000, start: 10, end: 500, loops: 3)
        job.transcoder.options.frame = .auto
        job.transcoder.options.preset = .sticker
        job.fault = .hang
        let result = TranscodeResult(
            sourceWidth: 97, sourceHeight: 63, width: 98, height: 64, frames: 12, samples: 11, duration: 300, loopCount: 0,
            isTransparent: true, hasAlpha: true, isBrokenOff: true, bytes: 4096)
        let failures: [TranscodeError] = [
            .notAnAnimation, .still(.webp), .incomplete(.apng), .corrupt(.webp, .noCanvas),
            .tooLarge(.frames, value: 9, maximum: 8),
            .encoderMissing(.avif), .codecMissing(.av1), .failed(.mux, code: -28), .outOfMemory,
            .startPastEnd(start: 500, duration: 300), .overBudget(smallest: 4096, maximum: 2048),
        ]
        let exits = [
            WorkerExit(code: 0, signal: nil, cpuMicroseconds: 5, peakBytes: 1 << 33),
            WorkerExit(code: nil, signal: 9, cpuMicroseconds: 30_000_000, peakBytes: 1),
        ]
        return [.job(WorkerJob(transcoder: Transcoder())), .job(job), .result(result)] + failures.map(WorkerMessage.failure)
            + exits.map(WorkerMessage.exit)
            + [
                .progress(FrameProgress(done: 7, total: 1 << 26)),
                .ready(Confinement(filtersCalls: true, landlockVersion: 4)),
            ]
    }
}
