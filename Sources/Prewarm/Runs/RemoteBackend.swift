package import Fleet
internal import Foundation
internal import HTTPClient
internal import Renditions
package import SystemIO

/// Sends entries to a running server (`POST /prewarm`), and polls the jobs.
package struct RemoteBackend: PrewarmBackend {
    private let server: String
    private let concurrency: Int
    private let retries: Int
    private let client: ServerClient
    /// Runs the requests, which block.
    private let threads: WorkThreads

    /// - Parameters:
    ///   - server: The URL of the server, for messages.
    ///   - retries: Attempts after the first, per entry.
    package init(server: String, concurrency: Int, retries: Int, client: ServerClient, threads: WorkThreads) {
        self.server = server
        self.concurrency = concurrency
        self.retries = retries
        self.client = client
        self.threads = threads
    }

    /// The entries per job: enough to keep the server busy, few enough for early results.
    private static let batchSize = 2000
    /// The number of unfinished entries of a job at which the next job is sent: entries that wait for their origins, for up to
    /// five minutes before each attempt, do not delay others.
    private static let remainder = 100
    /// The most jobs with a remainder.
    private static let remainderLimit = 8
    private static let interval = Duration.milliseconds(250)
    private static let remainderInterval = Duration.seconds(1)

    package func run(
        _ entries: [PrewarmEntry], _ finished: @escaping @Sendable (Int, PrewarmOutcome) -> Void
    ) async throws(PrewarmRunError) {
        let failure = await withTaskGroup(of: PrewarmRunError?.self) { group -> PrewarmRunError? in
            defer { group.cancelAll() }
            var remainders = 0
            for start in stride(from: 0, to: entries.count, by: Self.batchSize) where !Task.isCancelled {
                let batch = Array(entries[start...].prefix(Self.batchSize))
                let isLast = start + batch.count == entries.count
                do throws(PrewarmRunError) {
                    guard var job = try await send(batch, isFirst: start == 0) else { break }
                    let remainder = isLast ? 0 : Self.remainder
                    try await follow(&job, to: remainder, every: Self.interval) { finished(start + $0, $1) }
                    group.addTask { [job] in
                        var job = job
                        do throws(PrewarmRunError) {
                            try await follow(&job, to: 0, every: Self.remainderInterval) { finished(start + $0, $1) }
                            return nil
                        } catch {
                            return error
                        }
                    }
                } catch {
                    return error
                }
                remainders += 1
                while remainders >= Self.remainderLimit, let ended = await group.next() {
                    if let failure = ended { return failure }
                    remainders -= 1
                }
            }
            for await failure in group { if let failure { return failure } }
            return nil
        }
        if let failure { throw failure }
    }

    private struct Job {
        let id: String
        let count: Int
        /// The number of outcomes that were received.
        var known = 0
        /// The number of last responses that the server gave after the end of the job, without outcomes.
        var responsesWithoutNews = 0
    }

    private struct Accepted: Decodable {
        var id: String
    }

    /// Sends a job; nil if the task was cancelled.
    private func send(_ entries: [PrewarmEntry], isFirst: Bool) async throws(PrewarmRunError) -> Job? {
        let body = String(decoding: entries.flatMap { JSONText.encode($0) }, as: UTF8.self)
        let accepted: Accepted? = try await exchange(
            "POST", "/prewarm?retries=\(retries)&concurrency=\(concurrency)", body: body,
            // With the key, a retry after a lost response adds no second job.
            fields: ["Idempotency-Key: \(Hex.encode(UInt128.random(in: .min ... .max)))"],
            connectionAttempts: isFirst ? Self.firstAttempts : Self.attempts)
        return accepted.map { Job(id: $0.id, count: entries.count) }
    }

    /// Polls a job until at most `remainder` outcomes are missing. If the task is cancelled, cancels the job.
    private func follow(
        _ job: inout Job, to remainder: Int, every interval: Duration, _ finished: @Sendable (Int, PrewarmOutcome) -> Void
    ) async throws(PrewarmRunError) {
        while job.count - job.known > remainder {
            if Task.isCancelled {
                // The server finishes the entries in progress; the next run continues with the others.
                _ = await sendOnThread("DELETE", "/prewarm/\(job.id)", body: nil)
                job.known = job.count
                return
            }
            guard let report: PrewarmReport = try await exchange("GET", "/prewarm/\(job.id)?from=\(job.known)", body: nil)
            else { continue }
            let results = report.results ?? []
            for result in results where (0..<job.count).contains(result.number) { finished(result.number, result.outcome) }
            job.known += results.count
            if results.isEmpty && report.state == "cancelled" {
                throw PrewarmRunError("The job \(job.id) was cancelled on the server.")
            }
            // The last entries may end between the server's readings of the state and of the outcomes.
            job.responsesWithoutNews = results.isEmpty && report.state == "done" ? job.responsesWithoutNews + 1 : 0
            guard job.responsesWithoutNews < 3 else {
                throw PrewarmRunError(
                    "The job \(job.id) has ended, and the server no longer has the outcomes of \(job.count - job.known) entries."
                )
            }
            if results.count < PrewarmReport.resultLimit { try? await Task.sleep(for: interval) }
        }
    }

    /// Sends a request, retries it after temporary failures, and decodes the response; nil if the task was cancelled.
    private func exchange<Document: Decodable>(
        _ method: String, _ path: String, body: String?, fields: [String] = [], connectionAttempts: Int = Self.attempts
    ) async throws(PrewarmRunError) -> Document? {
        var backoff = RetryDelays()
        while !Task.isCancelled {
            var retryAfter: Int?
            var limit = Self.attempts
            let failure: String
            switch await sendOnThread(method, path, body: body, fields) {
            case .success(let answer)? where (200..<300).contains(answer.status):
                guard let document = try? JSONDecoder().decode(Document.self, from: Data(answer.body)) else {
                    throw PrewarmRunError("\(server) does not answer like a Gifreel server.")
                }
                return document
            case .success(let answer)? where [409, 429].contains(answer.status) || answer.status >= 500:
                retryAfter = answer.retryAfter.map { Int($0.components.seconds) }
                failure = "it answered with status \(answer.status)"
            case .success(let answer)?:
                throw PrewarmRunError(Self.sentence(answer, path, server))
            case .failure(let error)?:
                failure = if case .unreachable(let cause) = error { cause } else { error.description }
                limit = connectionAttempts
            case nil: return nil
            }
            guard backoff.attempts + 1 < limit else { throw PrewarmRunError("\(server) cannot be used: \(failure).") }
            try? await Task.sleep(for: backoff.next(retryAfter: retryAfter))
        }
        return nil
    }

    /// The attempts before the run ends: about two minutes, which covers a restart of the server.
    private static let attempts = 11
    /// The attempts to connect for the first request, about two seconds: probably no server runs there, or the URL is wrong.
    private static let firstAttempts = 4

    private func sendOnThread(
        _ method: String, _ path: String, body: String?, _ fields: [String] = []
    ) async -> Result<ClientResponse, HTTPError>? {
        await threads.run { [client] in
            Result { () throws(HTTPError) in
                try client.send(method, path, body: body.map { (text: $0, type: "application/x-ndjson") }, fields: fields)
            }
        }
    }

    private static func sentence(_ answer: ClientResponse, _ path: String, _ server: String) -> String {
        switch answer.status {
        case 401: "\(server) does not accept the token. Give its admin.token by --token or GIFREEL_ADMIN_TOKEN."
        case 404 where path.hasPrefix("/prewarm?"): "\(server) has no admin.token in its settings, or is not a Gifreel server."
        case 404: "\(server) no longer knows the job."
        default: "\(server) answered with \(answer.statusText)."
        }
    }
}
