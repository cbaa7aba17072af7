internal import Fetch
internal import Media
internal import Renditions
internal import Store

/// The body of `GET /explain?url=` (docs/api.md).
package struct Explanation: Codable, Sendable {
    /// What a request gets now.
    package enum Answer: String, Codable, Sendable, CaseIterable {
        case refused, hit, stale, confirmed, failed, joined, overloaded, produced
    }

    /// A problem, as a client sees it, with its cause.
    package struct Failure: Codable, Sendable {
        package let status: Int
        package let code: String
        package let detail: String
        /// The cause as in the log.
        package let cause: String?

        init(_ problem: Problem) {
            status = problem.status
            code = problem.code
            detail = problem.detail
            cause = problem.cause == problem.detail ? nil : problem.cause
        }
    }

    package struct Remembered: Codable, Sendable {
        /// Left out for a failure of the whole source, and for a rendition with other options than the requested ones.
        package let rendition: String?
        /// Whether it concerns the whole source.
        package let ofSource: Bool
        package let failure: Failure
        /// Seconds since it occurred.
        package let age: Int64
        /// Seconds until the next attempt.
        package let remaining: Int64
    }

    /// The result of an attempt.
    package struct Trial: Codable, Sendable {
        /// Left out after success.
        package let failure: Failure?
        package let sourceType: String?
        package let sourceBytes: Int?
        package let bytes: Int?
        package let frames: Int?
        package let width: Int?
        package let height: Int?
        /// Milliseconds by the name of the stage, such as `fetch_ms`.
        package let times: [String: Double]

        init(_ failure: Failure) {
            self.failure = failure
            (sourceType, sourceBytes, bytes, frames, width, height, times) = (nil, nil, nil, nil, nil, nil, [:])
        }

        init(_ trial: RenditionTrial) {
            failure = nil
            sourceType = trial.sourceFormat.name
            sourceBytes = trial.sourceBytes
            (bytes, frames) = (trial.result?.bytes, trial.result?.frames)
            (width, height) = (trial.result?.width, trial.result?.height)
            times = Dictionary(trial.times.logged) { first, _ in first }
        }
    }

    /// The canonical URL of the source.
    package let url: String
    /// The format and the options that differ from their defaults.
    package let rendition: String
    /// The mount that the address names; left out without one.
    package let mount: String?
    /// The mounts that serve the source.
    package let mounts: [String]
    /// The rule that allows the source, such as `sources.allow: *.example.com`; left out without one.
    package let rule: String?
    /// Whether a request needs a signature that the address does not have.
    package let lacksSignature: Bool
    /// Why a request is refused, even with a signature; left out if it is not.
    package let refusal: Failure?
    /// The stored renditions of the source, newest first.
    package let renditions: [CacheListing.Rendition]
    /// The remembered failures, latest first.
    package let failures: [Remembered]
    /// Why nothing is stored, as in `Cache-Status`; left out while renditions are stored.
    package let notStoring: String?
    package let answer: Answer
    /// What a request gets now, in a sentence.
    package let summary: String
    /// Left out without `fetch=true`.
    package let trial: Trial?

    init(
        _ subject: ExplainController.Subject, stored: [ListedRendition], _ outlook: RequestOutlook, notStoring: String?,
        trial: Trial?
    ) {
        url = subject.request.source.canonical
        rendition = subject.request.rendition.canonicalText
        mount = subject.mount
        mounts = subject.mounts
        rule = subject.rule
        lacksSignature = subject.lacksSignature
        refusal = subject.refusal.map(Failure.init)
        renditions = stored.map(CacheListing.Rendition.init)
        failures = outlook.failures.map { failure in
            Remembered(
                rendition: failure.key.flatMap { subject.name(of: $0) }, ofSource: failure.key == nil,
                failure: Failure(Problem(failure.error)), age: failure.age, remaining: failure.remaining)
        }
        self.notStoring = notStoring
        self.trial = trial
        let lack = lacksSignature ? "With a signature, a request" : "A request"
        if let refusal {
            answer = .refused
            summary = "A request is refused with \(refusal.status) \(refusal.code): \(refusal.detail)"
            return
        }
        switch outlook.answer {
        case .hit:
            (answer, summary) = (.hit, "\(lack) gets the stored rendition.")
        case .stale:
            (answer, summary) = (.stale, "\(lack) gets the stored rendition, while the origin is asked whether it has changed.")
        case .unconfirmed:
            (answer, summary) = (
                .confirmed,
                "\(lack) asks the origin first, because this node may have missed a purge, and gets the stored rendition."
            )
        case .expired:
            (answer, summary) = (
                .confirmed, "\(lack) asks the origin first, and gets the stored rendition unless the source has changed."
            )
        case .failure(let error):
            let problem = Problem(error)
            let seconds = if case .remembered(_, let remaining) = error { remaining } else { Int64(0) }
            answer = .failed
            let cause = "\(problem.status) \(problem.code)"
            let result = subject.target.sendsOriginal(after: error) ? "the source itself, instead of \(cause)," : cause
            summary =
                "\(lack) gets \(result) for another \(seconds) s, without another attempt. A purge of the source ends that."
        case .joined:
            (answer, summary) = (.joined, "\(lack) waits for the rendition, which is being produced.")
        case .overloaded:
            (answer, summary) = (.overloaded, "\(lack) gets 503 overloaded: too much work is waiting.")
        case .miss:
            (answer, summary) = (.produced, "\(lack) has the source fetched and the rendition produced.")
        }
    }
}
