internal import Digests
internal import Fetch
internal import Fleet
internal import HTTP
internal import Prewarm
internal import SystemIO

/// Handles `/prewarm` and `/prewarm/{id}` (docs/api.md).
struct PrewarmController: Sendable {
    let queue: PrewarmQueue
    let webhooks: Webhooks
    let threads: WorkThreads

    /// The size limit of a list in bytes.
    private static let bodyLimit = 32 << 20
    private static let defaultRetries = 2

    /// Handles a request that has the admin token.
    ///
    /// - Parameters:
    ///   - id: The job in the path; nil for `/prewarm`.
    ///   - key: The field `Idempotency-Key`; nil without one.
    func answer(_ method: HTTPMethod, _ id: String?, _ query: [QueryItem], key: String?) throws(Problem) -> HTTPReply {
        guard let id else { return method == .post ? try receiveList(query, key: key) : listJobs() }
        return try report(method, id, query)
    }

    private func listJobs() -> HTTPReply {
        Self.reply { [queue] () throws(PrewarmRefusal) in ["jobs": try await queue.lists()] }
    }

    private static func reply<Document: Encodable & Sendable>(
        with document: @escaping @Sendable () async throws(PrewarmRefusal) -> Document?
    ) -> HTTPReply {
        .attempt { () throws(Problem) in
            guard let document = try await translating(awaiting: try await document(), to: Problem.init(refusal:)) else {
                throw .notFound("There is no prewarm job with this id.")
            }
            return .json(document)
        }
    }

    /// The digest of an idempotency key (draft-ietf-httpapi-idempotency-key-header), which is a string in quotes or, from many
    /// clients, without them.
    private static func digest(ofKey key: String) throws(Problem) -> String {
        var text = key.utf8[...]
        if text.count >= 2, text.first == UInt8(ascii: "\""), text.last == UInt8(ascii: "\"") {
            text = text.dropFirst().dropLast()
        }
        guard (1...255).contains(text.count) else {
            throw .badRequest("Idempotency-Key must be a text of 1 to 255 characters.")
        }
        return Hex.encode(SHA256.hash(text))
    }

    /// Handles `POST /prewarm`. The query may have `retries`, `concurrency` and `callback`.
    private func receiveList(_ query: [QueryItem], key: String?) throws(Problem) -> HTTPReply {
        let key = if let key { try Self.digest(ofKey: key) } else { String?.none }
        var (retries, concurrency) = (Self.defaultRetries, queue.limits.concurrency)
        var callback: String?
        for item in query {
            switch (item.name, Int(item.value)) {
            case ("callback", _): callback = try webhooks.receiver(item.value).canonical
            case ("retries", let number?) where (0...20).contains(number): retries = number
            case ("concurrency", let number?) where number > 0: concurrency = min(concurrency, number)
            default: throw .badRequest("POST /prewarm takes retries (0 to 20), concurrency (from 1) and callback.")
            }
        }
        return .receive(
            CollectingSink(limit: Self.bodyLimit) { [queue, threads, retries, concurrency, callback] body throws(Problem) in
                let order = try await threads.perform { () throws(Problem) in
                    let content = "\(retries) \(concurrency) \(callback ?? "") \(Hex.encode(SHA256.hash(body)))"
                    let entries = try translating(try PrewarmListReader.read(body, limit: queue.limits.urls)) {
                        (error: PrewarmList.Malformed) in Problem.badRequest(error.description)
                    }
                    return PrewarmOrder(
                        id: Hex.encode(UInt128.random(in: .min ... .max)),
                        payloads: entries.enumerated().map { $1.queued($0, retries: retries, concurrency: concurrency) },
                        concurrency: concurrency, callback: callback,
                        request: key.map { PrewarmRequest(key: $0, content: Hex.encode(SHA256.hash(content.utf8))) })
                }
                let id = try await translating(awaiting: try await queue.add(order), to: Problem.init(refusal:))
                return .json(
                    Accepted(id: id, total: order.payloads.count), status: 202, ["Location": "/prewarm/\(id)"])
            })
    }

    /// Handles `GET` and `DELETE /prewarm/{id}`. The query's `from` is the index of the first entry whose outcome is returned.
    private func report(_ method: HTTPMethod, _ id: String, _ query: [QueryItem]) throws(Problem) -> HTTPReply {
        var first: Int?
        for item in query {
            guard item.name == "from", let number = Int(item.value), number >= 0 else {
                throw .badRequest("GET /prewarm/{id} takes from, a whole number.")
            }
            first = number
        }
        let from = first
        return Self.reply { [queue] () throws(PrewarmRefusal) in
            try await queue.report(id, from: from, isCancelling: method == .delete)
        }
    }

    private struct Accepted: Encodable {
        var id: String
        var total: Int
    }
}

extension Problem {
    fileprivate init(refusal: PrewarmRefusal) {
        switch refusal {
        case .stopping: self = .draining
        case .full(let waiting, let limit):
            self.init(
                503, "overloaded", "\(waiting) URLs are pending already; the limit is \(limit).", retryAfter: 60)
        case .notStored(let cause):
            self.init(503, "overloaded", "The list cannot be stored.", retryAfter: 30, cause: cause)
        case .unknown(let cause): self = .noCluster(cause)
        // Not a problem by itself: the answer names the job.
        case .known(let id): self.init(409, "request_in_progress", "The job \(id) has this Idempotency-Key.")
        case .inProgress:
            self.init(409, "request_in_progress", "A request with this Idempotency-Key is in progress.", retryAfter: 1)
        case .conflict:
            self.init(422, "idempotency_key_reused", "Another request had this Idempotency-Key.")
        }
    }
}
