internal import Media

/// A message between the server, the zygote and a worker: a fixed number of 64-bit words.
///
/// Nothing in it has a length of its own, so there is nothing to parse: a message of another size is not one.
struct WorkerMessage: Equatable {
    static let wordCount = 32
    static let byteCount = wordCount * MemoryLayout<Int64>.stride

    enum Kind: Int64 {
        case job = 1
        case result
        case failure
        case exit
        case ready
    }

    var words: [Int64]

    /// A message of `kind` with up to 31 words of contents.
    init(_ kind: Kind, _ contents: [Int64]) {
        words = [kind.rawValue] + contents
        words += Array(repeating: 0, count: Self.wordCount - words.count)
    }

    /// Reads a message; nil when the bytes are none.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.byteCount else { return nil }
        words = (0..<Self.wordCount).map {
            bytes.loadUnaligned(fromByteOffset: $0 * MemoryLayout<Int64>.stride, as: Int64.self)
        }
        guard kind != nil else { return nil }
    }

    var kind: Kind? { Kind(rawValue: words[0]) }

    /// The contents at an index, as a number that an `Int` holds.
    subscript(_ index: Int) -> Int { Int(truncatingIfNeeded: words[index + 1]) }
}

// MARK: - Jobs

extension WorkerMessage {
    init(_ job: WorkerJob) {
        let transcoder = job.transcoder
        let options = transcoder.options
        let background = options.background
        self.init(
            .job,
            [
                Int(transcoder.output.rawValue), transcoder.threads,
                transcoder.limits.side, transcoder.limits.canvasPixels, transcoder.limits.totalPixels,
                transcoder.limits.frames, transcoder.limits.duration,
                job.allowance.cpu, job.allowance.memory, job.allowance.output, job.allowance.wall,
                options.quality, Int(background.red) << 16 | Int(background.green) << 8 | Int(background.blue), options.frame,
                options.size.width ?? -1, options.size.height ?? -1, Int(options.size.fit.rawValue),
                options.time.speed, options.time.ceiling ?? -1, options.time.start, options.time.end ?? -1, options.time.loops,
                transcoder.limits.pixelsPerByte,
                job.fault?.rawValue ?? 0,
            ].map(Int64.init))
    }

    /// The job that the message holds; nil when it holds none.
    var job: WorkerJob? {
        guard kind == .job, let output = OutputFormat(rawValue: UInt8(truncatingIfNeeded: self[0])), let options else {
            return nil
        }
        return WorkerJob(
            transcoder: Transcoder(
                output: output, options: options,
                limits: MediaLimits(
                    side: self[2], canvasPixels: self[3], totalPixels: self[4], pixelsPerByte: self[22], frames: self[5],
                    duration: self[6]),
                threads: self[1]),
            allowance: WorkerJob.Allowance(cpu: self[7], memory: self[8], output: self[9], wall: self[10]),
            fault: WorkerFault(rawValue: self[23]))
    }

    private var options: TranscodeOptions? {
        guard let fit = SizeOptions.Fit(rawValue: UInt8(truncatingIfNeeded: self[16])) else { return nil }
        return TranscodeOptions(
            quality: self[11],
            background: RGB(
                red: UInt8(truncatingIfNeeded: self[12] >> 16), green: UInt8(truncatingIfNeeded: self[12] >> 8),
                blue: UInt8(truncatingIfNeeded: self[12])),
            size: SizeOptions(width: optional(14), height: optional(15), fit: fit),
            time: TimeOptions(
                speed: self[17], ceiling: optional(18), start: self[19], end: optional(20), loops: self[21]),
            frame: self[13])
    }

    /// The contents at an index where nothing is below 0.
    fileprivate func optional(_ index: Int) -> Int? { self[index] < 0 ? nil : self[index] }
}

// MARK: - Results

extension WorkerMessage {
    init(_ result: TranscodeResult) {
        self.init(
            .result,
            [
                result.sourceWidth, result.sourceHeight, result.width, result.height, result.frames, result.samples,
                result.duration, result.timescale, result.loopCount ?? -1, result.isTransparent ? 1 : 0, result.bytes,
            ].map(Int64.init))
    }

    /// The result that the message holds; nil when it holds none.
    var result: TranscodeResult? {
        guard kind == .result else { return nil }
        return TranscodeResult(
            sourceWidth: self[0], sourceHeight: self[1], width: self[2], height: self[3], frames: self[4],
            samples: self[5], duration: self[6], timescale: self[7], loopCount: optional(8), isTransparent: self[9] == 1,
            bytes: self[10])
    }
}

// MARK: - Failures

extension WorkerMessage {
    init(_ error: TranscodeError) {
        let contents: [Int] =
            switch error {
            case .notAGIF: [1]
            case .incomplete: [2]
            case .corrupt(let flaw): [3, Int(flaw.rawValue)]
            case .tooLarge(let name, let value, let maximum): [4, Int(name.rawValue), value, maximum]
            case .encoderMissing(let format): [5, Int(format.rawValue)]
            case .failed(let stage, let code): [6, Int(stage.rawValue), Int(code)]
            case .outOfMemory: [7]
            case .startPastEnd(let start, let duration): [8, 0, start, duration]
            }
        self.init(.failure, contents.map(Int64.init))
    }

    /// The error that the message holds; nil when it holds none.
    var failure: TranscodeError? {
        guard kind == .failure else { return nil }
        let detail = UInt8(truncatingIfNeeded: self[1])
        switch self[0] {
        case 1: return .notAGIF
        case 2: return .incomplete
        case 3: return TranscodeError.Flaw(rawValue: detail).map { .corrupt($0) }
        case 4:
            guard self[2] >= 0, self[3] >= 0 else { return nil }
            return MediaLimits.Name(rawValue: detail).map { .tooLarge($0, value: self[2], maximum: self[3]) }
        case 5: return OutputFormat(rawValue: detail).map { .encoderMissing($0) }
        case 6:
            return TranscodeError.Stage(rawValue: detail).map { .failed($0, code: Int32(truncatingIfNeeded: self[2])) }
        case 7: return .outOfMemory
        case 8:
            guard FactRange.duration.contains(self[2]), FactRange.duration.contains(self[3]) else { return nil }
            return .startPastEnd(start: self[2], duration: self[3])
        default: return nil
        }
    }
}
