internal import Cache
internal import Fetch
internal import Media
internal import Sandbox
internal import SystemIO

// The one place where each room's errors become statuses and codes (API.md §3).

extension Problem {
    init(_ error: FetchError) {
        let (status, code) =
            switch error {
            case .notAllowed: (403, "source_not_allowed")
            case .notFound: (404, "source_not_found")
            case .gone: (410, "source_gone")
            case .unreachable: (502, "source_unreachable")
            case .timeout: (504, "source_timeout")
            case .tooLarge: (422, "too_large")
            case .failed, .tooManyRedirects: (502, "source_failed")
            case .notAGIF: (415, "not_a_gif")
            case .busy, .exhausted, .cancelled: (503, "overloaded")
            case .closed: (503, "draining")
            }
        let seconds = error.retryAfter.map { Int(min($0.components.seconds, 300)) }
        self.init(
            status, code, error.publicDetail, retryAfter: seconds ?? (status == 503 ? 2 : nil), cause: "\(error)",
            lifetime: Self.lifetime(error))
    }

    /// How long it makes no sense to ask an origin again.
    private static func lifetime(_ error: FetchError) -> NegativeLifetime? {
        switch error {
        case .notFound, .gone: .missing
        case .notAGIF, .tooLarge: .unusable
        case .unreachable, .timeout, .failed, .tooManyRedirects, .notAllowed(.address):
            error.retryAfter.map { .retryAfter(seconds: $0.components.seconds) } ?? .transient
        // These are not the origin's doing.
        case .notAllowed(.pattern), .busy, .exhausted, .cancelled, .closed: nil
        }
    }

    init(_ error: TranscodeError) {
        if case .startPastEnd(_, let duration) = error {
            self = .badOption("start", "must be before the GIF's end, which is at \(DecimalText.text(duration, by: 100)) s")
            return
        }
        let (status, code) =
            switch error {
            case .notAGIF: (415, "not_a_gif")
            case .incomplete, .corrupt: (422, "corrupt_gif")
            case .tooLarge: (422, "too_large")
            case .encoderMissing, .failed, .outOfMemory, .startPastEnd: (422, "transcode_failed")
            }
        self.init(status, code, error.description, lifetime: .unusable)
    }

    init(_ error: SandboxError, limit: WorkerJob.Allowance) {
        switch error {
        case .rejected(.outOfMemory):
            self.init(
                422, "too_large",
                "The GIF is too large: its conversion needs more memory than \(limit.memory >> 20) MiB, which is the limit.")
        case .rejected(let error):
            self.init(error)
        case .timeout:
            self.init(
                422, "transcode_failed", "The conversion took longer than \(limit.cpu) s, which is the limit.",
                lifetime: .unusable)
        // Whether the GIF is at fault or the machine is not known, so these are not held against it for long.
        case .crashed(let exit):
            self.init(
                422, "transcode_failed", "The conversion failed.", cause: "worker ended: \(exit)", lifetime: .transient)
        case .misbehaved(let misbehaviour):
            self.init(
                422, "transcode_failed", "The conversion failed.", cause: "the worker misbehaved: \(misbehaviour)",
                lifetime: .transient)
        case .invalidOutput(let flaw):
            self.init(
                422, "transcode_failed", "The conversion failed.", cause: "the worker's file: \(flaw)",
                lifetime: .transient)
        case .queueFull, .cancelled:
            self = .overloaded
        case .unavailable(let error):
            self = .overloaded
            cause = "no worker: \(error)"
        }
    }

    init(_ error: CacheError) {
        self = .overloaded
        cause = error.description
    }
}
