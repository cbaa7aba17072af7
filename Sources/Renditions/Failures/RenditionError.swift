package import Fetch
internal import Media
package import Sandbox
package import Store
internal import SystemIO

/// Why there is no rendition.
///
/// The cases keep the error of the layer that failed, with its limits and causes. `Web` maps them to a status, code and
/// sentence.
package indirect enum RenditionError: Error, Sendable, Equatable {
    // MARK: The request

    /// An option is unknown, has no effect on the format, is out of range or contradicts another one. `reason` completes the
    /// sentence “The option … ”.
    case invalidOption(name: String, reason: String)
    /// The text is not the URL of a source.
    case invalidSourceURL(SourceURLError)
    /// The rendition is not stored, and the request permits no fetch.
    case notStored
    /// The client has used up its allowance of misses; `retryAfter` is in seconds, at least 1.
    case rateLimited(retryAfter: Int)

    // MARK: The source

    /// The source could not be fetched.
    case fetchFailed(FetchError)
    /// The conversion failed in a worker that ran under `allowance`.
    case conversionFailed(SandboxError, allowance: WorkerAllowance)
    /// The source is on the block list, with that label.
    case blocked(label: String)
    /// The animation flashes this often within one second, more than ``Flashes/allowed``.
    case flashing(general: Int, red: Int)
    /// The facts of the GIF could not be written or read.
    case factsUnusable(cause: String)

    // MARK: This server

    /// A queue is full, a wait took too long, or memory is short.
    case overloaded(cause: String?)
    /// The caller has waited for `limit`. The work goes on if a worker has begun it, or if other callers wait for it.
    case waitTimedOut(limit: Duration)
    /// The cache has no room for a new file, neither on disk nor in memory.
    case storageFailed(cause: String)
    /// The calling task was cancelled: its client is gone.
    case cancelled

    // MARK: Failure memory

    /// The error occurred before, and no further attempt is made for another `remaining` seconds, at least 1.
    case remembered(RenditionError, remaining: Int64)
}

extension RenditionError {
    /// How long the error is remembered for its source; nil if the next attempt may succeed at once.
    package var lifetime: NegativeLifetime? {
        switch self {
        case .fetchFailed(let error): Self.lifetime(error)
        // Each attempt occupies a worker for that long, so the next attempt waits as long.
        case .conversionFailed(.wallClockTimeout, let allowance): .retryAfter(seconds: Int64(allowance.wall))
        case .conversionFailed(let error, _): Self.lifetime(error)
        case .blocked, .flashing: .unusable
        case .invalidOption, .invalidSourceURL, .notStored, .rateLimited, .factsUnusable, .overloaded, .waitTimedOut,
            .storageFailed,
            .cancelled, .remembered:
            nil
        }
    }

    private static func lifetime(_ error: FetchError) -> NegativeLifetime? {
        switch error {
        case .notFound, .gone: .missing
        // Probably an error page: the origin fails for the moment, whatever its status.
        case .notAnAnimation(.html), .notAnAnimation(.xml), .notAnAnimation(.json), .notAnAnimation(.text),
            .notAnAnimation(.empty):
            .transient
        case .notAnAnimation, .tooLarge: .unusable
        case .unreachable, .timeout, .failed, .tooManyRedirects, .notAllowed(.address), .notAllowed(.redirect):
            error.retryAfter.map { .retryAfter(seconds: $0.components.seconds) } ?? .transient
        // The origin did not cause these.
        case .notAllowed(.pattern), .busy, .exhausted, .cancelled, .closed: nil
        }
    }

    private static func lifetime(_ error: SandboxError) -> NegativeLifetime? {
        switch error {
        // Another start is another request for the same source.
        case .rejected(.startPastEnd): nil
        case .rejected where error.fileSystemError != nil: nil
        case .rejected, .cpuLimitExceeded: .unusable
        // The GIF may be at fault, or the converter.
        case .crashed, .misbehaved, .invalidOutput: .transient
        // The server is at fault.
        case .wallClockTimeout, .killed, .zygoteUnresponsive, .queueFull, .cancelled, .unavailable: nil
        }
    }

    /// What a caller that can wait may do about an error.
    package enum Retry: Sendable, Equatable {
        /// The server has no capacity; `after` is in seconds.
        case whenServerHasCapacity(after: Int)
        /// The origin failed; `after` is in seconds, nil if the origin named no time.
        case whenOriginRecovers(after: Int?)
        /// Another attempt produces the same error.
        case never
    }

    /// Whether another attempt may succeed, and when.
    package var retry: Retry {
        switch self {
        case .invalidOption, .invalidSourceURL, .notStored, .blocked, .flashing: .never
        case .rateLimited(let seconds): .whenServerHasCapacity(after: seconds)
        case .fetchFailed(let error): Self.retry(error)
        case .conversionFailed(let error, _): Self.retry(error)
        case .factsUnusable, .overloaded, .storageFailed, .cancelled: .whenServerHasCapacity(after: 2)
        case .waitTimedOut: .whenServerHasCapacity(after: 5)
        case .remembered(let error, let remaining):
            switch error.retry {
            case .whenServerHasCapacity: .whenServerHasCapacity(after: Int(remaining))
            case .whenOriginRecovers: .whenOriginRecovers(after: Int(remaining))
            case .never: .never
            }
        }
    }

    private static func retry(_ error: FetchError) -> Retry {
        let seconds = error.retryAfter.map { Int(min($0.components.seconds, 300)) }
        return switch error {
        case .notAllowed, .notFound, .gone, .tooLarge, .notAnAnimation: .never
        case .unreachable, .timeout, .failed, .tooManyRedirects: .whenOriginRecovers(after: seconds)
        case .busy, .exhausted, .cancelled, .closed: .whenServerHasCapacity(after: seconds ?? 2)
        }
    }

    private static func retry(_ error: SandboxError) -> Retry {
        switch error {
        case .rejected where error.fileSystemError != nil: .whenServerHasCapacity(after: 5)
        case .rejected, .cpuLimitExceeded, .crashed, .misbehaved, .invalidOutput: .never
        case .wallClockTimeout, .killed, .zygoteUnresponsive, .unavailable: .whenServerHasCapacity(after: 5)
        case .queueFull, .cancelled: .whenServerHasCapacity(after: 2)
        }
    }

    /// Whether the server has refused the work because it has no capacity.
    var isRefusal: Bool {
        switch self {
        case .overloaded, .fetchFailed(.busy), .conversionFailed(.queueFull, _): true
        default: false
        }
    }

    /// Whether a rule or a limit of the settings caused the error.
    var isOfSettings: Bool {
        switch self {
        case .blocked, .flashing, .fetchFailed(.notAllowed), .fetchFailed(.tooLarge), .fetchFailed(.tooManyRedirects),
            .fetchFailed(.timeout), .conversionFailed(.rejected(.refused), _), .conversionFailed(.rejected(.tooLarge), _),
            .conversionFailed(.rejected(.outOfMemory), _), .conversionFailed(.cpuLimitExceeded, _),
            .conversionFailed(.wallClockTimeout, _):
            true
        default: false
        }
    }

    /// Whether the error is ``flashing(general:red:)``, new or remembered.
    var isOfFlashes: Bool {
        switch self {
        case .flashing: true
        case .remembered(let error, _): error.isOfFlashes
        default: false
        }
    }

    /// Whether no rendition of the source may be sent, not even a stored one: the source is blocked or flashes, or no client
    /// waits.
    package var forbidsRenditions: Bool {
        switch self {
        case .blocked, .cancelled: true
        case .remembered(let error, _): error.forbidsRenditions
        default: isOfFlashes
        }
    }

    /// Whether the source is a still image that browsers show.
    package var isOfImage: Bool {
        switch self {
        case .fetchFailed(.notAnAnimation(let kind)): kind.isShownAsImage
        // The first bytes of a PNG with long texts or a large profile do not tell.
        case .conversionFailed(.rejected(.still), _): true
        case .remembered(let error, _): error.isOfImage
        default: false
        }
    }

    /// Whether the source may be sent in place of the rendition.
    package var permitsOriginal: Bool { concernsRendition || isOfImage }

    /// Whether the source may be usable although no rendition can be produced: the converter failed, and not the client or the
    /// origin.
    var concernsRendition: Bool {
        switch self {
        case .conversionFailed(.rejected(.startPastEnd), _), .conversionFailed(.rejected(.overBudget), _): false
        case .conversionFailed, .factsUnusable, .overloaded, .waitTimedOut, .storageFailed: true
        case .remembered(let error, _): error.concernsRendition
        default: false
        }
    }

    package init(_ error: CacheError) {
        self = if case .busy = error { .overloaded(cause: error.description) } else { .storageFailed(cause: error.description) }
    }
}

extension Cache {
    /// Runs blocking work on a thread of the cache.
    func onThread<Value: Sendable>(
        _ work: @escaping @Sendable () throws(RenditionError) -> Value
    ) async throws(RenditionError) -> Value {
        let result = try await translating(
            awaiting: try await onThread { () throws(CacheError) in Result { () throws(RenditionError) in try work() } },
            to: RenditionError.init)
        return try result.get()
    }
}
