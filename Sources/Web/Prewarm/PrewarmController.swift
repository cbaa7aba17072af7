internal import HTTP
internal import Prewarm
internal import Renditions
internal import SystemIO

/// Handles `/prewarm` and `/prewarm/{id}` (docs/api.md).
struct PrewarmController: Sendable {
    private let queue: PrewarmQueue
    private let admin: AdminController
    private let threads: WorkThreads

    /// The size limit of a list in bytes.
    private static let bodyLimit = 32 << 20
    /// The number of retries of a request without `retries`.
    private static let defaultRetries = 2

    init(queue: PrewarmQueue, admin: AdminController, threads: WorkThreads) {
        self.queue = queue
        self.admin = admin
        self.threads = threads
    }

    /// Checks the admin token and handles the request.
    ///
    /// - Parameter id: The job in the path; nil for `/prewarm`.
    func answer(
        _ method: HTTPMethod, _ id: String?, _ query: [QueryItem], authorization: String?
    ) throws(Problem) -> HTTPReply {
        try admin.authorize(authorization)
        guard let id else { return try receiveList(query) }
        return try report(method, id, query)
    }

    /// Handles `POST /prewarm`. The query may have `retries` and `concurrency`.
    private func receiveList(_ query: [QueryItem]) throws(Problem) -> HTTPReply {
        var (retries, concurrency) = (Self.defaultRetries, queue.limits.concurrency)
        for item in query {
            switch (item.name, Int(item.value)) {
            case ("retries", let number?) where (0...20).contains(number): retries = number
            case ("concurrency", let number?) where number > 0: concurrency = min(concurrency, number)
            default: throw .badRequest("POST /prewarm takes retries (0 to 20) and concurrency (from 1).")
            }
        }
        let options = (retries: retries, concurrency: concurrency)
        return .receive(
            CollectingSink(limit: Self.bodyLimit) { [queue, threads] body in
                let outcome = await threads.run { () -> Result<PrewarmJob.Order, Problem> in
                    do {
                        let order = PrewarmJob.Order(
                            id: Self.newID(), entries: try PrewarmListReader.read(body, limit: queue.limits.urls),
                            retries: options.retries, concurrency: options.concurrency)
                        try queue.add(order)
                        return .success(order)
                    } catch let error as PrewarmList.Malformed {
                        return .failure(.badRequest(error.description))
                    } catch let refusal as PrewarmQueue.Refusal {
                        return .failure(Problem(refusal))
                    } catch {
                        return .failure(.overloaded)
                    }
                }
                switch outcome {
                case .success(let order)?:
                    return Self.json(
                        202, Accepted(id: order.id, total: order.entries.count), ["Location": "/prewarm/\(order.id)"])
                case .failure(let problem)?: return ProblemDocument.response(problem)
                case nil: return ProblemDocument.response(.draining)
                }
            })
    }

    /// Handles `GET` and `DELETE /prewarm/{id}`. The query's `from` requests the outcomes of entries from that index on.
    private func report(_ method: HTTPMethod, _ id: String, _ query: [QueryItem]) throws(Problem) -> HTTPReply {
        guard let job = queue.job(id) else { throw .notFound("There is no prewarm job with this id.") }
        var first: Int?
        for item in query {
            guard item.name == "from", let number = Int(item.value), number >= 0 else {
                throw .badRequest("GET /prewarm/{id} takes from, a whole number.")
            }
            first = number
        }
        let from = first
        return .later { [queue, threads] in
            if method == .delete { _ = await threads.run { queue.cancel(job) } }
            return Self.json(200, PrewarmReport(job, from: from), [:])
        }
    }

    private struct Accepted: Encodable {
        var id: String
        var total: Int
    }

    private static func newID() -> String {
        Hex.encode(UInt128.random(in: .min ... .max))
    }

    private static func json(_ status: Int, _ value: some Encodable, _ headers: HTTPHeaders) -> HTTPResponse {
        var headers = headers
        headers.append("Content-Type", "application/json")
        headers.append("Cache-Control", "no-store")
        return HTTPResponse(status: status, headers: headers, body: .bytes(JSONText.encode(value)))
    }
}

/// Collects a request body in memory.
private final class CollectingSink: HTTPBodySink {
    let limit: Int
    private let respond: @Sendable ([UInt8]) async -> HTTPResponse
    private var bytes: [UInt8] = []

    init(limit: Int, respond: @escaping @Sendable ([UInt8]) async -> HTTPResponse) {
        self.limit = limit
        self.respond = respond
    }

    func write(_ bytes: UnsafeRawBufferPointer) {
        self.bytes.append(contentsOf: bytes)
    }

    func finish() -> HTTPReply {
        let (body, respond) = (bytes, respond)
        bytes = []
        return .later { await respond(body) }
    }

    func abort() {
        bytes = []
    }
}

extension Problem {
    fileprivate init(_ refusal: PrewarmQueue.Refusal) {
        switch refusal {
        case .stopping: self = .draining
        case .full(let waiting, let limit):
            self.init(
                503, "overloaded", "\(waiting) URLs are pending already; the limit is \(limit).", retryAfter: 60)
        case .notStored(let cause):
            self.init(503, "overloaded", "The list cannot be stored.", retryAfter: 30, cause: cause)
        }
    }
}
