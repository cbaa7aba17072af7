internal import Media

/// A message between the server, the zygote and a worker: a fixed number of 64-bit words.
///
/// Each payload lists its fields once, in a `visitFields` function that both writes and reads them. All fields have a fixed
/// length, so bytes of another length are not a message.
enum WorkerMessage: Equatable {
    case job(WorkerJob)
    case result(TranscodeResult)
    case failure(TranscodeError)
    /// The worker is set up, and begins with the source.
    case begun
    /// The worker has encoded a part of the frames.
    case progress(FrameProgress)
    case exit(WorkerExit)
    /// The zygote is ready and has this confinement.
    case ready(Confinement)

    static let wordCount = 56
    static let byteCount = wordCount * MemoryLayout<Int64>.stride

    /// The kind of a message: its first word.
    private enum Kind: Int64 {
        case job = 1
        case result
        case failure
        case exit
        case ready
        case progress
        case begun
    }

    /// The message as ``wordCount`` words.
    var words: [Int64] {
        let kind: Kind
        var coder = FieldCoder()
        switch self {
        case .job(var job):
            kind = .job
            job.visitFields(&coder)
        case .result(var result):
            kind = .result
            result.visitFields(&coder)
        case .failure(let failure):
            kind = .failure
            failure.write(&coder)
        case .begun: kind = .begun
        case .progress(var progress):
            kind = .progress
            progress.visitFields(&coder)
        case .exit(var exit):
            kind = .exit
            exit.visitFields(&coder)
        case .ready(var confinement):
            kind = .ready
            confinement.visitFields(&coder)
        }
        precondition(coder.words.count < Self.wordCount, "a message with too many fields")
        return [kind.rawValue] + coder.words + Array(repeating: 0, count: Self.wordCount - 1 - coder.words.count)
    }

    /// Reads a message; returns nil if the bytes are not a message.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.byteCount else { return nil }
        let words = (0..<Self.wordCount).map {
            bytes.loadUnaligned(fromByteOffset: $0 * MemoryLayout<Int64>.stride, as: Int64.self)
        }
        guard let kind = Kind(rawValue: words[0]) else { return nil }
        var coder = FieldCoder(reading: words[1...])
        switch kind {
        case .job:
            var job = WorkerJob(transcoder: Transcoder())
            job.visitFields(&coder)
            self = .job(job)
        case .result:
            var result = TranscodeResult.unread
            result.visitFields(&coder)
            self = .result(result)
        case .failure:
            guard let failure = TranscodeError(reading: &coder) else { return nil }
            self = .failure(failure)
        case .begun: self = .begun
        case .progress:
            var progress = FrameProgress(done: 0, total: 0)
            progress.visitFields(&coder)
            guard progress.isInRange else { return nil }
            self = .progress(progress)
        case .exit:
            var exit = WorkerExit(code: nil, signal: nil, cpuMicroseconds: 0, peakBytes: 0)
            exit.visitFields(&coder)
            self = .exit(exit)
        case .ready:
            var confinement = Confinement(filtersCalls: false, landlockVersion: 0)
            confinement.visitFields(&coder)
            self = .ready(confinement)
        }
        if !coder.isValid { return nil }
    }

    var job: WorkerJob? { if case .job(let job) = self { job } else { nil } }
    var result: TranscodeResult? { if case .result(let result) = self { result } else { nil } }
    var failure: TranscodeError? { if case .failure(let failure) = self { failure } else { nil } }
    var progress: FrameProgress? { if case .progress(let progress) = self { progress } else { nil } }
    var exit: WorkerExit? { if case .exit(let exit) = self { exit } else { nil } }
    var confinement: Confinement? { if case .ready(let confinement) = self { confinement } else { nil } }
}

// MARK: - The fields of each payload

extension WorkerJob {
    fileprivate mutating func visitFields(_ coder: inout FieldCoder) {
        coder.value(&transcoder.output)
        coder.number(&transcoder.threads)
        transcoder.options.visitFields(&coder)
        transcoder.limits.visitFields(&coder)
        coder.number(&allowance.cpu)
        coder.number(&allowance.memory)
        coder.number(&allowance.output)
        coder.number(&allowance.wall)
        coder.number(&taskLimit)
        coder.optionalValue(&fault)
    }
}

extension TranscodeOptions {
    fileprivate mutating func visitFields(_ coder: inout FieldCoder) {
        coder.optionalNumber(&chosenQuality)
        coder.number(&background.red)
        coder.number(&background.green)
        coder.number(&background.blue)
        coder.optionalNumber(&size.width)
        coder.optionalNumber(&size.height)
        coder.value(&size.fit)
        coder.number(&size.gravity.x)
        coder.number(&size.gravity.y)
        coder.number(&time.speed)
        coder.optionalNumber(&time.ceiling)
        coder.number(&time.start)
        coder.optionalNumber(&time.end)
        coder.number(&time.loops)
        var number = frame.number
        coder.optionalNumber(&number)
        frame = number.map(PosterFrame.number) ?? .auto
        coder.value(&codec)
        coder.optionalValue(&preset)
        coder.value(&undither)
        coder.number(&zoom)
        coder.value(&tune)
        coder.optionalNumber(&maxBytes)
        coder.value(&chroma)
        coder.value(&bframes)
        coder.optionalValue(&facts)
    }
}

extension MediaLimits {
    fileprivate mutating func visitFields(_ coder: inout FieldCoder) {
        coder.number(&side)
        coder.number(&canvasPixels)
        coder.number(&totalPixels)
        coder.number(&pixelsPerByte)
        coder.number(&frames)
        coder.number(&duration)
        coder.number(&clipDuration)
        var bits = formats.rawValue
        coder.number(&bits)
        formats = SourceFormats(rawValue: bits)
    }
}

extension TranscodeResult {
    fileprivate mutating func visitFields(_ coder: inout FieldCoder) {
        coder.number(&sourceWidth)
        coder.number(&sourceHeight)
        coder.number(&width)
        coder.number(&height)
        coder.number(&frames)
        coder.number(&samples)
        coder.number(&duration)
        coder.number(&timescale)
        coder.optionalNumber(&loopCount)
        coder.flag(&isTransparent)
        coder.flag(&hasAlpha)
        coder.flag(&isBrokenOff)
        coder.flag(&isUndithered)
        coder.value(&sourceFormat)
        coder.number(&bytes)
    }
}

extension FrameProgress {
    fileprivate mutating func visitFields(_ coder: inout FieldCoder) {
        coder.number(&done)
        coder.number(&total)
    }
}

extension WorkerExit {
    fileprivate mutating func visitFields(_ coder: inout FieldCoder) {
        coder.optionalNumber(&code)
        coder.optionalNumber(&signal)
        coder.number(&cpuMicroseconds)
        coder.number(&peakBytes)
    }
}

extension Confinement {
    fileprivate mutating func visitFields(_ coder: inout FieldCoder) {
        coder.flag(&filtersCalls)
        coder.number(&landlockVersion)
    }
}

extension TranscodeError {
    /// The code of each case, so that neither writing nor reading can omit a case.
    private enum Code: Int {
        case notAnAnimation = 1
        case incomplete
        case corrupt
        case tooLarge
        case encoderMissing
        case failed
        case outOfMemory
        case startPastEnd
        case codecMissing
        case still
        case overBudget
        case unsupported
        case refused
    }

    fileprivate func write(_ coder: inout FieldCoder) {
        func write(_ code: Code, _ details: Int...) {
            for number in [code.rawValue] + details {
                var number = number
                coder.number(&number)
            }
        }
        switch self {
        case .notAnAnimation: write(.notAnAnimation)
        case .still(let format): write(.still, Int(format.rawValue))
        case .incomplete(let format): write(.incomplete, Int(format.rawValue))
        case .corrupt(let format, let flaw): write(.corrupt, Int(format.rawValue), Int(flaw.rawValue))
        case .unsupported(let format, let lack): write(.unsupported, Int(format.rawValue), Int(lack.rawValue))
        case .refused(let format): write(.refused, Int(format.rawValue))
        case .tooLarge(let name, let value, let maximum): write(.tooLarge, Int(name.rawValue), value, maximum)
        case .encoderMissing(let format): write(.encoderMissing, Int(format.rawValue))
        case .codecMissing(let codec): write(.codecMissing, Int(codec.rawValue))
        case .failed(let stage, let code): write(.failed, Int(stage.rawValue), Int(code))
        case .outOfMemory: write(.outOfMemory)
        case .startPastEnd(let start, let duration): write(.startPastEnd, start, duration)
        case .overBudget(let smallest, let maximum): write(.overBudget, smallest, maximum)
        }
    }

    /// Reads an error; returns nil if the fields are not those of an error, or if a number is out of range.
    fileprivate init?(reading coder: inout FieldCoder) {
        var fields = [0, 0, 0, 0]
        for index in fields.indices { coder.number(&fields[index]) }
        guard let code = Code(rawValue: fields[0]), let detail = UInt8(exactly: fields[1] & 0xff) else { return nil }
        let found: TranscodeError?
        switch code {
        case .notAnAnimation: found = .notAnAnimation
        case .still: found = SourceFormat(rawValue: detail).map { .still($0) }
        case .incomplete: found = SourceFormat(rawValue: detail).map { .incomplete($0) }
        case .corrupt:
            guard let format = SourceFormat(rawValue: detail), let raw = UInt8(exactly: fields[2]),
                let flaw = Flaw(rawValue: raw)
            else { return nil }
            found = .corrupt(format, flaw)
        case .unsupported:
            guard let format = SourceFormat(rawValue: detail), let raw = UInt8(exactly: fields[2]),
                let lack = Lack(rawValue: raw)
            else { return nil }
            found = .unsupported(format, lack)
        case .refused: found = SourceFormat(rawValue: detail).map { .refused($0) }
        case .tooLarge:
            guard fields[2] >= 0, fields[3] >= 0 else { return nil }
            found = MediaLimits.Name(rawValue: detail).map { .tooLarge($0, value: fields[2], maximum: fields[3]) }
        case .encoderMissing: found = OutputFormat(rawValue: detail).map { .encoderMissing($0) }
        case .codecMissing: found = VideoCodec(rawValue: detail).map { .codecMissing($0) }
        case .failed:
            guard let number = Int32(exactly: fields[2]) else { return nil }
            found = Stage(rawValue: detail).map { .failed($0, code: number) }
        case .outOfMemory: found = .outOfMemory
        case .startPastEnd:
            guard FactRange.duration.contains(fields[1]), FactRange.duration.contains(fields[2]) else { return nil }
            found = .startPastEnd(start: fields[1], duration: fields[2])
        case .overBudget:
            guard fields[1] >= 0, fields[2] >= 0 else { return nil }
            found = .overBudget(smallest: fields[1], maximum: fields[2])
        }
        guard let found else { return nil }
        self = found
    }
}
