internal import Renditions

/// The document at `/status/{id}`. Numbers that are not known are null; `url` and `problem` are left out.
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
    @Nullable var totalBytes: Int?
    let framesDone: Int
    @Nullable var framesTotal: Int?
    @Nullable var queuePosition: Int?
    /// The address of the rendition, once it is done.
    let url: String?
    /// Why there is no rendition, if it failed.
    let problem: ProblemDocument.Content?

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

    var encoded: [UInt8] { JSONText.encode(self, inSnakeCase: true) }
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
