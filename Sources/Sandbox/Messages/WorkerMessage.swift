package import Media

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
            let (code, numbers) = failure.form
            for var number in [code.rawValue] + numbers { coder.number(&number) }
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
            var numbers = [0, 0, 0, 0]
            for index in numbers.indices { coder.number(&numbers[index]) }
            guard let code = TranscodeError.Kind(rawValue: numbers[0]), let failure = TranscodeError(code, Array(numbers[1...]))
            else { return nil }
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

// MARK: - Errors as numbers

extension TranscodeError {
    /// The kind of an error. The raw value crosses the process border.
    package enum Kind: Int {
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

    /// The kind, and the numbers from which ``init(_:_:)`` restores the error.
    package var form: (kind: Kind, numbers: [Int]) {
        switch self {
        case .notAnAnimation: (.notAnAnimation, [])
        case .still(let format): (.still, [Int(format.rawValue)])
        case .incomplete(let format): (.incomplete, [Int(format.rawValue)])
        case .corrupt(let format, let flaw): (.corrupt, [Int(format.rawValue), Int(flaw.rawValue)])
        case .unsupported(let format, let lack): (.unsupported, [Int(format.rawValue), Int(lack.rawValue)])
        case .refused(let format): (.refused, [Int(format.rawValue)])
        case .tooLarge(let name, let value, let maximum): (.tooLarge, [Int(name.rawValue), value, maximum])
        case .encoderMissing(let format): (.encoderMissing, [Int(format.rawValue)])
        case .codecMissing(let codec): (.codecMissing, [Int(codec.rawValue)])
        case .failed(let stage, let code): (.failed, [Int(stage.rawValue), Int(code)])
        case .outOfMemory: (.outOfMemory, [])
        case .startPastEnd(let start, let duration): (.startPastEnd, [start, duration])
        case .overBudget(let smallest, let maximum): (.overBudget, [smallest, maximum])
        }
    }

    /// Restores an error; nil if the numbers are not those of an error, or out of range. Surplus numbers are ignored.
    package init?(_ kind: Kind, _ numbers: [Int]) {
        func number(_ index: Int) -> Int { index < numbers.count ? numbers[index] : -1 }
        func value<Value: RawRepresentable<UInt8>>(_ index: Int) -> Value? {
            UInt8(exactly: number(index)).flatMap { Value(rawValue: $0) }
        }
        let found: TranscodeError? =
            switch kind {
            case .notAnAnimation: .notAnAnimation
            case .still: value(0).map { .still($0) }
            case .incomplete: value(0).map { .incomplete($0) }
            case .corrupt: value(0).flatMap { format in value(1).map { .corrupt(format, $0) } }
            case .unsupported: value(0).flatMap { format in value(1).map { .unsupported(format, $0) } }
            case .refused: value(0).map { .refused($0) }
            case .tooLarge where number(1) >= 0 && number(2) >= 0:
                value(0).map { .tooLarge($0, value: number(1), maximum: number(2)) }
            case .encoderMissing: value(0).map { .encoderMissing($0) }
            case .codecMissing: value(0).map { .codecMissing($0) }
            case .failed: value(0).flatMap { stage in Int32(exactly: number(1)).map { .failed(stage, code: $0) } }
            case .outOfMemory: .outOfMemory
            case .startPastEnd where FactRange.duration.contains(number(0)) && FactRange.duration.contains(number(1)):
                .startPastEnd(start: number(0), duration: number(1))
            case .overBudget where number(0) >= 0 && number(1) >= 0: .overBudget(smallest: number(0), maximum: number(1))
            case .tooLarge, .startPastEnd, .overBudget: nil
            }
        guard let found else { return nil }
        self = found
    }
}
