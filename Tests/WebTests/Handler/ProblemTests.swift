import Fetch
import HTTP
import Media
import Renditions
@testable import Sandbox
import SystemIO
import TestSupport
import Testing

@testable import Web

@Suite("Every error of the core has a status, a code and a sentence") struct ProblemTests {
    private struct Row: Sendable, CustomTestStringConvertible {
        let error: RenditionError
        let status: Int
        let code: String
        let detail: String
        var retryAfter: Int?
        var cacheStatus: String?

        init(
            _ error: RenditionError, _ status: Int, _ code: String, _ detail: String, retryAfter: Int? = nil,
            cacheStatus: String? = nil
        ) {
            self.error = error
            self.status = status
            self.code = code
            self.detail = detail
            self.retryAfter = retryAfter
            self.cacheStatus = cacheStatus
        }

        var testDescription: String { "\(error)" }
    }

    private static let miss = "gifreel; fwd=miss"
    private static let negative = "gifreel; hit; detail=negative"
    private static let exit = WorkerExit(code: nil, signal: 11, cpuMicroseconds: 0, peakBytes: 0)

    private static func fetch(
        _ error: FetchError, _ status: Int, _ code: String, _ detail: String, retryAfter: Int? = nil, isCaused: Bool = true
    ) -> Row {
        Row(.fetchFailed(error), status, code, detail, retryAfter: retryAfter, cacheStatus: isCaused ? miss : nil)
    }

    private static func conversion(
        _ error: SandboxError, _ status: Int, _ code: String, _ detail: String, retryAfter: Int? = nil,
        isCaused: Bool = true
    ) -> Row {
        Row(
            .conversionFailed(error, allowance: WorkerAllowance(cpu: 7, memory: 300 << 20)), status, code, detail,
            retryAfter: retryAfter, cacheStatus: isCaused ? miss : nil)
    }

    private static let rows: [Row] = [
        Row(
            .waitTimedOut(limit: .seconds(120)), 503, "overloaded",
            "The rendition is not finished after 120 s. Try again later.", retryAfter: 5),
        Row(.invalidOption(name: "fps", reason: "is odd"), 400, "bad_option", "The option “fps” is odd."),
        Row(
            .invalidSourceURL(.credentials), 400, "bad_source_url",
            "The source URL must not contain a user name or password."),
        Row(
            .notStored, 504, "not_stored",
            "The rendition is not stored, and the request permits no fetch (Cache-Control: only-if-cached).",
            cacheStatus: "gifreel; detail=only-if-cached"),
        Row(
            .rateLimited(retryAfter: 9), 429, "rate_limited", "This address has requested too many new renditions.",
            retryAfter: 9),
        Row(
            .blocked(label: "x)"), 451, "blocked", "The operator of this server has blocked the source.",
            cacheStatus: "gifreel; fwd=miss"),
        Row(
            .flashing(general: 5, red: 4), 422, "flashing",
            "The animation flashes 5 times within a second. This server permits 3.", cacheStatus: "gifreel; fwd=miss"),
        Row(
            .factsUnusable(cause: "x"), 503, "overloaded", "The server could not write the facts. Try again later.",
            retryAfter: 5),
        Row(.overloaded(cause: nil), 503, "overloaded", "Too many conversions are waiting.", retryAfter: 2),
        Row(
            .overloaded(cause: "x"), 503, "overloaded", "The server cannot make the rendition now. Try again later.",
            retryAfter: 2),
        Row(
            .storageFailed(cause: "x"), 503, "overloaded", "The server cannot use its storage now. Try again later.",
            retryAfter: 2),
        Row(.cancelled, 503, "draining", "The request was cancelled, or the server is stopping.", retryAfter: 2),
        Row(
            .remembered(.fetchFailed(.notFound), remaining: 3), 404, "source_not_found", "The source was not found.",
            cacheStatus: negative),
        Row(
            .remembered(.fetchFailed(.timeout(.total, limit: .seconds(3))), remaining: 3), 504, "source_timeout",
            "Fetching the source took longer than 3 s (sources.timeout).", retryAfter: 3, cacheStatus: negative),

        fetch(
            .notAllowed(.pattern), 403, "source_not_allowed", "Sources of this host or path may not be fetched.",
            isCaused: false),
        fetch(
            .notAllowed(.redirect(host: "b.test")), 403, "source_not_allowed",
            "The source redirects to a host or path that may not be fetched."),
        fetch(
            .notAllowed(.address(.address(purpose: "loopback"))), 403, "source_not_allowed",
            "The address of the source is private; the setting sources.allow_private allows it."),
        fetch(
            .notAllowed(.address(.port(22, allowed: PortSet([80...80, 8000...8080])))), 403, "source_not_allowed",
            "The source's port, 22, is not in the setting sources.ports: 80, 8000–8080."),
        fetch(.notAllowed(.address(.itself)), 403, "source_not_allowed", "The source is this service itself."),
        fetch(.notFound, 404, "source_not_found", "The source was not found."),
        fetch(.gone, 410, "source_gone", "The source is gone."),
        fetch(
            .unreachable(cause: "x"), 502, "source_unreachable", "The source cannot be reached.", retryAfter: 8),
        fetch(
            .timeout(.connect, limit: .seconds(3)), 504, "source_timeout",
            "Connecting to the source took longer than 3 s (sources.connect_timeout).", retryAfter: 8),
        fetch(
            .timeout(.stall, limit: .milliseconds(1500)), 504, "source_timeout",
            "The source sent almost nothing for 1500 ms (sources.stall_timeout).", retryAfter: 8),
        fetch(
            .tooLarge(limit: 10, declared: 11), 422, "too_large", "The source has 11 bytes; the limit is 10 bytes."),
        fetch(
            .tooLarge(limit: 10, declared: nil), 422, "too_large",
            "The source has more than 10 bytes, which is the limit."),
        fetch(
            .failed(.status(500, retryAfter: nil)), 502, "source_failed", "The source answered with status 500.",
            retryAfter: 8),
        fetch(
            .failed(.status(503, retryAfter: .seconds(40))), 502, "source_failed",
            "The source answered with status 503.", retryAfter: 40),
        fetch(
            .failed(.status(503, retryAfter: .seconds(90_000))), 502, "source_failed",
            "The source answered with status 503.", retryAfter: 300),
        fetch(
            .failed(.redirectToNowhere), 502, "source_failed",
            "The source redirects to a URL that cannot be fetched.", retryAfter: 8),
        fetch(
            .failed(.tls(cause: "x")), 502, "source_failed", "The TLS connection to the source failed.", retryAfter: 8),
        fetch(
            .failed(.cutShort(cause: "x")), 502, "source_failed", "The source's response ended too early.",
            retryAfter: 8),
        fetch(.notAnAnimation(looksLike: .png), 415, "not_an_animation", "This PNG has no animation."),
        fetch(
            .tooManyRedirects(limit: 5), 502, "source_failed", "The source redirects more than 5 times.", retryAfter: 8),
        fetch(.busy, 503, "overloaded", "Too many sources are being fetched.", retryAfter: 1, isCaused: false),
        fetch(.cancelled, 503, "overloaded", "The source was not fetched.", retryAfter: 2, isCaused: false),
        fetch(.closed, 503, "draining", "The source was not fetched.", retryAfter: 2, isCaused: false),
        fetch(
            .exhausted(cause: "x"), 503, "overloaded", "The source was not fetched.", retryAfter: 2, isCaused: false),

        conversion(.rejected(.notAnAnimation), 415, "not_an_animation", "The file is not an animation or a video."),
        conversion(.rejected(.still(.webp)), 415, "not_an_animation", "This WebP has no animation."),
        conversion(
            .rejected(.incomplete(.gif)), 422, "corrupt_gif", "The GIF is incomplete: it ends before its first frame does."),
        conversion(.rejected(.corrupt(.gif, .noFrames)), 422, "corrupt_gif", "The GIF is corrupt: it has no frames."),
        conversion(
            .rejected(.unsupported(.mov, .codec)), 422, "unsupported",
            "The QuickTime file is not supported: its codec is not H.264, HEVC, VP8, VP9 or AV1."),
        conversion(.rejected(.refused(.mp4)), 415, "not_an_animation", "This server takes no MP4."),
        conversion(
            .rejected(.tooLarge(.frames, value: 9, maximum: 8)), 422, "too_large",
            "The animation is too large: the number of frames is at least 9, and the limit is 8."),
        conversion(
            .rejected(.tooLarge(.side, value: 9, maximum: 8)), 422, "too_large",
            "The animation is too large: the longest side in pixels is 9, and the limit is 8."),
        conversion(
            .rejected(.tooLarge(.canvasPixels, value: 9, maximum: 8)), 422, "too_large",
            "The animation is too large: the number of pixels of one frame is 9, and the limit is 8."),
        conversion(
            .rejected(.tooLarge(.totalPixels, value: 9, maximum: 8)), 422, "too_large",
            "The animation is too large: the number of pixels of all frames together is at least 9, and the limit is 8."),
        conversion(
            .rejected(.encoderMissing(.mp4)), 422, "transcode_failed", "libx264 is missing from libavcodec."),
        conversion(
            .rejected(.codecMissing(.av1)), 422, "transcode_failed",
            "The encoder for av1 is missing from libavcodec."),
        conversion(
            .rejected(.failed(.mux, code: -22)), 422, "transcode_failed",
            "The conversion failed while muxing (code -22)."),
        conversion(
            .rejected(.failed(.write, code: -28)), 503, "overloaded",
            "The server could not write the rendition. Try again later.", retryAfter: 5, isCaused: false),
        conversion(
            .rejected(.startPastEnd(start: 500, duration: 250)), 400, "bad_option",
            "The option “start” must be before the animation's end, which is at 2.5 s.", isCaused: false),
        conversion(
            .rejected(.overBudget(smallest: 4096, maximum: 2048)), 422, "over_budget",
            "The result has at least 4096 bytes, and max_bytes allows 2048. A smaller width, a lower fps or a part needs fewer."
        ),
        conversion(
            .rejected(.outOfMemory), 422, "too_large",
            "The animation is too large: its conversion needs more memory than 300 MiB, which is the limit."),
        conversion(
            .cpuLimitExceeded, 422, "transcode_failed",
            "The conversion takes more than 7 s of processor time, which is the limit."),
        conversion(.crashed(exit), 422, "transcode_failed", "The converter crashed while it read the animation."),
        conversion(
            .misbehaved(.garbledMessage), 422, "transcode_failed", "The converter gave no valid reply for the GIF."),
        conversion(.invalidOutput(.outOfRange), 422, "transcode_failed", "The converter produced an invalid file."),
        conversion(
            .wallClockTimeout, 503, "overloaded",
            "The server is too busy to finish the conversion in time. Try again later.", retryAfter: 14),
        conversion(
            .killed(exit), 503, "overloaded", "The conversion was interrupted on the server. Try again later.",
            retryAfter: 5, isCaused: false),
        conversion(
            .zygoteUnresponsive, 503, "overloaded", "The conversion was interrupted on the server. Try again later.",
            retryAfter: 5, isCaused: false),
        conversion(
            .queueFull, 503, "overloaded", "Too many conversions are waiting.", retryAfter: 2, isCaused: false),
        conversion(
            .cancelled, 503, "draining", "The request was cancelled, or the server is stopping.", retryAfter: 2,
            isCaused: false),
        conversion(
            .unavailable(SystemError("fork", code: 11)), 503, "overloaded",
            "The server cannot start a conversion now. Try again later.", retryAfter: 5, isCaused: false),
    ]

    @Test(arguments: rows) private func anErrorOfTheCoreHasItsStatusCodeAndSentence(_ row: Row) {
        let problem = Problem(row.error)
        #expect(problem.status == row.status && problem.code == row.code)
        #expect(problem.detail == row.detail)
        #expect(problem.retryAfter == row.retryAfter)
        #expect(problem.cacheStatus == row.cacheStatus)
        // Clients do not see causes.
        #expect(!problem.detail.contains("x)") && problem.detail.hasSuffix("."))
    }

    @Test func theTableHasEveryCase() {
        let names = Set(Self.rows.map { Self.name($0.error) })
        #expect(names.count == 13 + 13 + 23, "\(names.sorted())")
    }

    /// The case of an error. The switches have no default, so a new case does not compile until it is named here; the count
    /// above then requires a row for it.
    private static func name(_ error: RenditionError) -> String {
        switch error {
        case .invalidOption: "invalidOption"
        case .invalidSourceURL: "invalidSourceURL"
        case .notStored: "notStored"
        case .rateLimited: "rateLimited"
        case .fetchFailed(let error): "fetchFailed.\(name(error))"
        case .conversionFailed(let error, _): "conversionFailed.\(name(error))"
        case .blocked: "blocked"
        case .flashing: "flashing"
        case .factsUnusable: "factsUnusable"
        case .overloaded: "overloaded"
        case .waitTimedOut: "waitTimedOut"
        case .storageFailed: "storageFailed"
        case .cancelled: "cancelled"
        case .remembered(let error, _): Problem(error).status >= 500 ? "remembered.server" : "remembered.source"
        }
    }

    private static func name(_ error: FetchError) -> String {
        switch error {
        case .notAllowed: "notAllowed"
        case .notFound: "notFound"
        case .gone: "gone"
        case .unreachable: "unreachable"
        case .timeout: "timeout"
        case .tooLarge: "tooLarge"
        case .failed: "failed"
        case .notAnAnimation: "notAnAnimation"
        case .tooManyRedirects: "tooManyRedirects"
        case .busy: "busy"
        case .cancelled: "cancelled"
        case .closed: "closed"
        case .exhausted: "exhausted"
        }
    }

    private static func name(_ error: SandboxError) -> String {
        switch error {
        case .rejected(let error): "rejected.\(name(error))"
        case .cpuLimitExceeded: "cpuLimitExceeded"
        case .crashed: "crashed"
        case .misbehaved: "misbehaved"
        case .invalidOutput: "invalidOutput"
        case .wallClockTimeout: "wallClockTimeout"
        case .killed: "killed"
        case .zygoteUnresponsive: "zygoteUnresponsive"
        case .queueFull: "queueFull"
        case .cancelled: "cancelled"
        case .unavailable: "unavailable"
        }
    }

    private static func name(_ error: TranscodeError) -> String {
        switch error {
        case .notAnAnimation: "notAnAnimation"
        case .still: "still"
        case .incomplete: "incomplete"
        case .corrupt: "corrupt"
        case .unsupported: "unsupported"
        case .refused: "refused"
        case .tooLarge: "tooLarge"
        case .encoderMissing: "encoderMissing"
        case .codecMissing: "codecMissing"
        case .failed: "failed"
        case .startPastEnd: "startPastEnd"
        case .overBudget: "overBudget"
        case .outOfMemory: "outOfMemory"
        }
    }

    // MARK: Documents

    @Test func onlyErrorsThatTheSourceCausesMayBeStoredByCaches() {
        for row in Self.rows {
            let headers = ProblemDocument.response(Problem(row.error)).headers
            let isStorable = [404, 410, 415, 422].contains(row.status)
            #expect(headers["Cache-Control"] == (isStorable ? "public, max-age=60" : "no-store"), "\(row.error)")
            #expect(headers["Retry-After"] == row.retryAfter.map(String.init), "\(row.error)")
        }
        #expect(ProblemDocument.response(.notFound("There is no such route.")).headers["Cache-Control"] == "no-store")
    }

    @Test func aRefusedTokenIsAnsweredWithTheSchemeToUse() {
        #expect(ProblemDocument.response(.unauthorized).headers["WWW-Authenticate"] == "Bearer")
        #expect(ProblemDocument.response(.draining).headers["WWW-Authenticate"] == nil)
    }

    @Test func anOptionNameIsRepeatedUpToALimit() {
        let problem = Problem.badOption(String(repeating: "n", count: 1000), "is not known")
        #expect(problem.detail.utf8.count < 100)
    }

    @Test func anErrorPageHasTheStatusAndFieldsOfTheDocumentAndEscapesTheSentence() throws {
        let problem = Problem(503, "overloaded", "<b>Busy</b>", retryAfter: 7)
        let page = ErrorPage(version: "9").page(problem, headers: ["Vary": "Accept"])
        #expect(page.status == 503 && page.headers["Retry-After"] == "7" && page.headers["Vary"] == "Accept")
        #expect(page.headers["Content-Type"] == "text/html; charset=utf-8" && page.headers["Cache-Control"] == "no-store")
        #expect(page.headers["Content-Security-Policy"]?.contains("default-src 'none'") == true)
        #expect(page.headers["Cross-Origin-Embedder-Policy"] == "require-corp")
        #expect(page.headers["Cross-Origin-Resource-Policy"] == "cross-origin")
        guard case .bytes(let bytes) = page.body else {
            Issue.record("no body")
            return
        }
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(text.contains("&lt;b&gt;Busy&lt;/b&gt;") && text.contains("Gifreel 9") && !text.contains("<b>"))
    }
}
