internal import Fetch
package import Fleet
internal import Media
package import Renditions
internal import Sandbox
internal import SystemIO

// The only translation of the core's errors into statuses, codes and sentences (docs/api.md, errors).

extension Problem {
    package init(_ error: RenditionError) {
        switch error {
        case .invalidOption(let name, let reason): self = .badOption(name, reason)
        case .invalidSourceURL(let error): self = .badSourceURL(error.description)
        case .notStored: self = .notStored
        case .rateLimited(let seconds): self = .rateLimited(retryAfter: seconds)
        case .fetchFailed(let source):
            self.init(source)
            describeFirst(error)
        case .conversionFailed(let sandbox, let allowance):
            self.init(sandbox, limit: allowance)
            describeFirst(error)
        case .blocked:
            // The label is for the operator.
            self.init(451, "blocked", "The operator of this server has blocked the source.")
            describeFirst(error)
        case .flashing(let general, let red):
            let flashes = general >= red ? "\(general) times" : "\(red) times in red"
            self.init(
                422, "flashing", "The animation flashes \(flashes) within a second. This server permits \(Flashes.allowed).")
            describeFirst(error)
        case .factsUnusable(let cause):
            self = .interrupted("The server could not write the facts. Try again later.", cause: cause)
        case .overloaded(nil): self = .overloaded
        case .overloaded(let cause?):
            self = .interrupted("The server cannot make the rendition now. Try again later.", cause: cause, retryAfter: 2)
        case .waitTimedOut(let limit):
            self = .interrupted(
                "The rendition is not finished after \(limit.components.seconds) s. Try again later.",
                cause: "transcode.wait_timeout has passed")
        case .storageFailed(let cause):
            self = .interrupted("The server cannot use its storage now. Try again later.", cause: cause, retryAfter: 2)
        case .cancelled:
            // The client has left, so the response is not sent.
            self = .cancelled
            isLogged = false
        case .remembered(let error, let remaining):
            self.init(error)
            isLogged = false
            cacheStatus = "gifreel; hit; detail=negative"
            if status >= 500 { retryAfter = Int(remaining) }
        }
    }

    /// The longest time for which a transient error is remembered.
    private static let maxTransientSeconds = 8

    /// Sets the fields that later responses with the remembered error have, so that the first one has them too.
    private mutating func describeFirst(_ error: RenditionError) {
        guard let lifetime = error.lifetime else { return }
        cacheStatus = "gifreel; fwd=miss"
        guard status >= 500, retryAfter == nil else { return }
        switch lifetime {
        case .transient: retryAfter = Self.maxTransientSeconds
        case .retryAfter(let seconds): retryAfter = Int(min(max(seconds, 1), 300))
        default: break
        }
    }

    private init(_ error: FetchError) {
        let (status, code) =
            switch error {
            case .notAllowed: (403, "source_not_allowed")
            case .notFound: (404, "source_not_found")
            case .gone: (410, "source_gone")
            case .unreachable: (502, "source_unreachable")
            case .timeout: (504, "source_timeout")
            case .tooLarge: (422, "too_large")
            case .failed, .tooManyRedirects: (502, "source_failed")
            case .notAnAnimation: (415, "not_an_animation")
            case .busy, .exhausted, .cancelled: (503, "overloaded")
            case .closed: (503, "draining")
            }
        let seconds = error.retryAfter.map { Int(min($0.components.seconds, 300)) }
        self.init(
            status, code, error.publicDetail, retryAfter: seconds ?? (status == 503 ? 2 : nil), cause: "\(error)")
        if case .exhausted = error { isServerFault = true }
    }

    private init(_ error: TranscodeError) {
        if case .startPastEnd(_, let duration) = error {
            self = .badOption(
                "start", "must be before the animation's end, which is at \(DecimalText.text(duration, by: 100)) s")
            return
        }
        let (status, code) =
            switch error {
            case .notAnAnimation, .still, .refused: (415, "not_an_animation")
            case .unsupported: (422, "unsupported")
            case .incomplete, .corrupt: (422, "corrupt_gif")
            case .tooLarge: (422, "too_large")
            case .overBudget: (422, "over_budget")
            case .encoderMissing, .codecMissing, .failed, .outOfMemory, .startPastEnd: (422, "transcode_failed")
            }
        self.init(status, code, error.description)
    }

    private init(_ error: SandboxError, limit: WorkerAllowance) {
        switch error {
        case .rejected(.outOfMemory):
            self.init(
                422, "too_large",
                "The animation is too large: its conversion needs more memory than \(limit.memory >> 20) MiB, which is the limit."
            )
        case .rejected where error.fileSystemError != nil:
            self = .interrupted(
                "The server could not write the rendition. Try again later.",
                cause: error.fileSystemError.map { "the worker's file: \($0)" })
        case .rejected(let error):
            self.init(error)
        case .cpuLimitExceeded:
            self.init(
                422, "transcode_failed",
                "The conversion takes more than \(limit.cpu) s of processor time, which is the limit.")
        // The GIF may be at fault, or the converter.
        case .crashed(let exit):
            self.init(
                422, "transcode_failed", "The converter crashed while it read the animation.", cause: "the worker \(exit)")
        case .misbehaved(let misbehaviour):
            self.init(
                422, "transcode_failed", "The converter gave no valid reply for the GIF.",
                cause: "the worker misbehaved: \(misbehaviour)")
        case .invalidOutput(let flaw):
            self.init(
                422, "transcode_failed", "The converter produced an invalid file.", cause: "the worker's file: \(flaw)")
        // The server is at fault. The same request may succeed later.
        case .wallClockTimeout:
            self = .interrupted(
                "The server is too busy to finish the conversion in time. Try again later.",
                cause: "the worker did not end within \(limit.wall) s", retryAfter: nil)
        case .killed(let exit):
            self = .interrupted(
                "The conversion was interrupted on the server. Try again later.",
                // The kernel kills a process this way when memory runs out; other senders are rare.
                cause: "the worker \(exit)" + (exit.signal == Self.kill ? "; possibly out of memory" : ""))
        case .zygoteUnresponsive:
            self = .interrupted(
                "The conversion was interrupted on the server. Try again later.",
                cause: "the zygote process did not respond and was replaced")
        case .queueFull: self = .overloaded
        case .cancelled: self = .cancelled
        case .unavailable(let error):
            self = .interrupted("The server cannot start a conversion now. Try again later.", cause: "no worker: \(error)")
        }
    }

    /// A failure for a reason unrelated to the source.
    private static func interrupted(_ detail: String, cause: String?, retryAfter seconds: Int? = 5) -> Problem {
        Problem(503, "overloaded", detail, retryAfter: seconds, cause: cause, isServerFault: true)
    }

    /// The number of SIGKILL.
    private static let kill: Int32 = 9
}

extension PrewarmOutcome {
    /// The outcome of an entry that fails with an error, with the code and the sentence of an HTTP response.
    package init(_ error: RenditionError) {
        let problem = Problem(error)
        self.init(code: problem.code, detail: problem.detail)
    }
}

extension WorkThreads {
    /// Runs blocking work. Throws ``Problem/busy`` if too much work is waiting.
    func perform<Value: Sendable>(_ work: @escaping @Sendable () throws(Problem) -> Value) async throws(Problem) -> Value {
        guard let result = await run({ Result { () throws(Problem) in try work() } }) else { throw .busy }
        return try result.get()
    }
}
