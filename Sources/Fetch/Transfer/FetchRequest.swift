/// A fetch on its way from the task that asks to the transfer loop.
struct FetchRequest: Sendable {
    typealias ID = UInt64

    let id: ID
    let url: SourceURL
    let validators: SourceValidators
    /// Header fields to send along.
    let fields: [String]
    let submitted: ContinuousClock.Instant
    let continuation: CheckedContinuation<Result<FetchOutcome, FetchError>, Never>
}
