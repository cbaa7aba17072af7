internal import Fetch
internal import Foundation
internal import Renditions
package import SystemIO

/// Has a running server do the work (`POST /prewarm`), and follows it.
package struct RemoteBackend: PrewarmBackend {
    let server: String
    let concurrency: Int
    let retries: Int
    let client: ServerClient
    /// Requests block, so they have a thread.
    let threads: WorkThreads

    package init(server: String, concurrency: Int, retries: Int, client: ServerClient, threads: WorkThreads) {
        self.server = server
        self.concurrency = concurrency
        self.retries = retries
        self.client = client
        self.threads = threads
    }

    /// Entries of one job: enough to keep a server busy, few enough to be heard of soon.
    private static let portion = 2000
    /// Between two questions how far it is.
    private static let interval = Duration.milliseconds(250)

    package func run(
        _ entries: [PrewarmEntry], _ finished: @escaping @Sendable (Int, PrewarmOutcome) -> Void
    ) async throws(PrewarmRunError) {
        var start = 0
        while start < entries.count, !Task.isCancelled {
            let portion = Array(entries[start...].prefix(Self.portion))
            let offset = start
            try await runJob(portion) { finished(offset + $0, $1) }
            start += portion.count
        }
    }

    private struct Accepted: Decodable {
        var id: String
    }

    private func runJob(
        _ entries: [PrewarmEntry], _ finished: @Sendable (Int, PrewarmOutcome) -> Void
    ) async throws(PrewarmRunError) {
        let body = String(decoding: entries.flatMap { JSONText.encode($0) }, as: UTF8.self)
        guard
            let accepted: Accepted = try await exchange(
                "POST", "/prewarm?retries=\(retries)&concurrency=\(concurrency)", body: body)
        else { return }
        var known = 0
        while known < entries.count {
            if Task.isCancelled {
                // What it has begun it finishes; the rest is for the next run.
                _ = await send("DELETE", "/prewarm/\(accepted.id)", body: nil)
                return
            }
            guard let report: PrewarmReport = try await exchange("GET", "/prewarm/\(accepted.id)?from=\(known)", body: nil)
            else { continue }
            let results = report.results ?? []
            for result in results where entries.indices.contains(result.number) { finished(result.number, result.outcome) }
            known += results.count
            if results.isEmpty && report.state == "cancelled" {
                throw PrewarmRunError("The job \(accepted.id) was called off on the server.")
            }
            if results.count < PrewarmReport.resultLimit { try? await Task.sleep(for: Self.interval) }
        }
    }

    /// Sends a request until it is answered with a document; nil when the task was cancelled meanwhile.
    private func exchange<Document: Decodable>(
        _ method: String, _ path: String, body: String?
    ) async throws(PrewarmRunError) -> Document? {
        var backoff = Backoff()
        while !Task.isCancelled {
            var retryAfter: Int?
            let failure: String
            switch await send(method, path, body: body) {
            case .success(let answer)? where (200..<300).contains(answer.status):
                guard let document = try? JSONDecoder().decode(Document.self, from: Data(answer.body.utf8)) else {
                    throw PrewarmRunError("\(server) does not answer as Gifreel does.")
                }
                return document
            case .success(let answer)? where answer.status == 429 || answer.status >= 500:
                retryAfter = answer.retryAfter
                failure = "it answered with status \(answer.status)"
            case .success(let answer)?:
                throw PrewarmRunError(Self.sentence(answer.status, path, server))
            case .failure(.unreachable(let cause))?: failure = cause
            case .failure(let error)?: failure = error.description
            case nil: return nil
            }
            guard backoff.attempts < Self.patience else { throw PrewarmRunError("\(server) cannot be used: \(failure).") }
            try? await Task.sleep(for: backoff.next(retryAfter: retryAfter))
        }
        return nil
    }

    /// Attempts before a server is given up: some two minutes, which a restart may take.
    private static let patience = 10

    private func send(_ method: String, _ path: String, body: String?) async -> Result<ServerClient.Answer, FetchError>? {
        await threads.run { [client] in
            do throws(FetchError) {
                return .success(try client.send(method, path, body: body.map { (text: $0, type: "application/x-ndjson") }))
            } catch {
                return .failure(error)
            }
        }
    }

    private static func sentence(_ status: Int, _ path: String, _ server: String) -> String {
        switch status {
        case 401: "\(server) does not accept the token. Give its admin.token by --token or GIFREEL_ADMIN_TOKEN."
        case 404 where path.hasPrefix("/prewarm?"): "\(server) has no admin.token in its settings, or is no Gifreel."
        case 404: "\(server) does not know the job any more."
        default: "\(server) answered with status \(status)."
        }
    }
}
