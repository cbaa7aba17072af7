/// What `GET /prewarm/{id}` tells (docs/api.md).
package struct PrewarmReport: Codable {
    /// A failure among the first of its job.
    struct Failure: Codable {
        var url: String
        var code: String
        var detail: String
    }

    /// An outcome with its entry's number in the list.
    struct Result: Codable {
        var number: Int
        var outcome: PrewarmOutcome
    }

    var id: String
    var state: String
    var total: Int
    /// Failed ones included.
    var done: Int
    var failed: Int
    var hits: Int
    var new: Int
    /// Of renditions in the cache now.
    var bytes: Int
    var saved: Int
    var errors: [Failure]
    /// Outcomes from the one asked for on, in the order in which they came; only where asked for.
    var results: [Result]?

    /// Failures told; the job's number has them all.
    static let errorLimit = 100
    /// Outcomes in one answer.
    static let resultLimit = 1000

    /// - Parameter first: The first outcome wanted; nil for none.
    package init(_ job: PrewarmJob, from first: Int?) {
        let progress = job.progress
        id = job.order.id
        state = progress.state.rawValue
        total = job.order.entries.count
        done = progress.totals.done
        failed = progress.totals.failed
        hits = progress.totals.hits
        new = progress.totals.new
        bytes = progress.totals.bytes
        saved = progress.totals.saved
        errors = progress.outcomes.lazy.filter { $0.outcome.kind == .failed }.prefix(Self.errorLimit).map { failed in
            Failure(
                url: job.order.entries[failed.number].url, code: failed.outcome.code ?? "",
                detail: failed.outcome.detail ?? "")
        }
        results = first.map { first in
            progress.outcomes.dropFirst(first).prefix(Self.resultLimit).map { Result(number: $0.number, outcome: $0.outcome) }
        }
    }
}
