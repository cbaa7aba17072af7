internal import Renditions

/// The document at `/status/{id}`.
struct StatusDocument: Encodable, Equatable {
    enum State: String, Encodable {
        case fetching
        case waiting
        case encoding
        case done
        case failed
    }

    let state: State
    let fetchedBytes: Int
    let totalBytes: Int?
    let framesDone: Int
    let framesTotal: Int?
    let queuePosition: Int?
    /// The address of the rendition, once it is done.
    let url: String?
    /// Why there is no rendition, if it failed.
    let problem: ProblemDocument.Content?

    /// Whether no other document follows.
    var isFinal: Bool { state == .done || state == .failed }

    init(_ request: AsyncRequest) {
        let (progress, outcome) = request.current
        let facts: RenditionFacts?
        (state, url, problem, facts) =
            switch outcome {
            case nil: (State(progress.stage), nil, nil, nil)
            case .done(let url, let facts): (.done, url, nil, facts)
            case .failed(let problem): (.failed, nil, ProblemDocument.Content(problem), nil)
            case .cancelled: (.failed, nil, ProblemDocument.Content(.cancelled), nil)
            }
        // A short conversion ends before its worker reports anything.
        fetchedBytes = facts?.sourceBytes ?? progress.fetchedBytes
        totalBytes = facts?.sourceBytes ?? progress.totalBytes
        framesTotal = facts?.frames ?? progress.framesTotal
        framesDone = facts?.frames ?? progress.framesDone
        queuePosition = outcome == nil ? progress.queuePosition : nil
    }

    /// The document as JSON.
    var encoded: [UInt8] { JSONText.encode(self, inSnakeCase: true) }

    private enum CodingKeys: CodingKey {
        case state, fetchedBytes, totalBytes, framesDone, framesTotal, queuePosition, url, problem
    }

    /// Numbers that are not known are null; `url` and `problem` are left out.
    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(state, forKey: .state)
        try container.encode(fetchedBytes, forKey: .fetchedBytes)
        try container.encode(totalBytes, forKey: .totalBytes)
        try container.encode(framesDone, forKey: .framesDone)
        try container.encode(framesTotal, forKey: .framesTotal)
        try container.encode(queuePosition, forKey: .queuePosition)
        try container.encodeIfPresent(url, forKey: .url)
        try container.encodeIfPresent(problem, forKey: .problem)
    }
}

extension StatusDocument.State {
    fileprivate init(_ stage: MissProgress.Stage) {
        self =
            switch stage {
            case .fetching: .fetching
            case .waiting: .waiting
            case .encoding: .encoding
            }
    }
}

extension Problem {
    /// The error of a request whose client has cancelled it or left, for its event streams.
    static let cancelled = Problem(503, "draining", "The request was cancelled, or the server is stopping.", retryAfter: 2)
}
