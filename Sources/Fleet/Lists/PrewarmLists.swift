package import SystemIO

/// Lists of entries to bring into the cache: one server's own lists, or lists shared by all nodes of a cluster.
///
/// A claimed entry belongs to its runner until the runner finishes the entry or stops renewing the claim. An entry counts once,
/// even if two runners have worked on it. Thread-safe; the functions suspend while they wait for the disk or the server.
package protocol PrewarmLists: Sendable {
    /// Why the disk or the server has failed.
    associatedtype Fault: Error

    /// Signalled when entries were added, for the one runner on this node.
    var arrivals: AsyncSignal { get }

    /// Claims entries, and the reports on lists that have ended.
    ///
    /// - Parameters:
    ///   - count: The most entries. A runner should claim only what it can process now, so that all nodes share a list.
    ///   - lists: Lists that have reached their concurrency limit on this node. Their entries delay no other list.
    func claim(_ count: Int, except lists: Set<String>) async throws(Fault) -> [PrewarmTicket]

    /// Renews claims. To be called at least every third of ``ClusterTimings/claimTime``.
    func renew(_ tickets: [PrewarmTicket]) async throws(Fault)

    /// Counts an entry as finished, or ends a report, which then is not claimed again.
    ///
    /// - Parameters:
    ///   - result: Nil for a report.
    ///   - url: The URL of the entry's source, for the report on a failure.
    /// - Returns: False if the entry or report was finished before.
    func finish(_ ticket: PrewarmTicket, _ result: PrewarmReport.Result?, url: String) async throws(Fault) -> Bool

    /// Returns the report on a list, with the outcomes from `first` on, without any for nil; nil if the list is unknown.
    func report(_ id: String, from first: Int?) async throws(Fault) -> PrewarmReport?
}

/// A claimed entry of a list, or the claimed report on one.
package struct PrewarmTicket: Sendable, Hashable {
    /// The entry's id, which is unique in its list.
    package let id: String
    package let list: String
    /// The entry as it was added.
    package let payload: [UInt8]
    /// The URL to which the end of the list is reported; nil for an entry. A report has no payload.
    package let callback: String?

    package init(id: String, list: String, payload: [UInt8], callback: String? = nil) {
        self.id = id
        self.list = list
        self.payload = payload
        self.callback = callback
    }
}

package struct PrewarmOrder: Sendable {
    package let id: String
    /// The entries, which the lists do not interpret.
    package let payloads: [[UInt8]]
    /// The number of entries that a node works on at the same time.
    package let concurrency: Int
    /// The URL that receives the report when all entries are finished; nil for none.
    package let callback: String?
    /// The request that adds the list, if it may be repeated.
    package let request: PrewarmRequest?

    package init(
        id: String, payloads: [[UInt8]], concurrency: Int = 1, callback: String? = nil, request: PrewarmRequest? = nil
    ) {
        self.id = id
        self.payloads = payloads
        self.concurrency = concurrency
        self.callback = callback
        self.request = request
    }
}

/// A repeatable request, identified by digests of its idempotency key and its content.
package struct PrewarmRequest: Sendable, Equatable {
    package let key: String
    package let content: String

    package init(key: String, content: String) {
        (self.key, self.content) = (key, content)
    }
}

/// Why a list of entries was not accepted or cannot be found.
package enum PrewarmRefusal: Error, Sendable, Equatable {
    case stopping
    case full(waiting: Int, limit: Int)
    case notStored(cause: String)
    /// The lists on disk, or those of the cluster, could not be read.
    case unknown(cause: String)
    case known(id: String)
    case inProgress
    case conflict
}

/// The body of `GET /prewarm/{id}` (docs/api.md).
package struct PrewarmReport: Codable, Sendable, Equatable {
    /// An outcome with the number of its entry.
    package struct Result: Codable, Sendable, Equatable {
        /// The index of the entry in its list; negative for an entry that cannot be read.
        package let number: Int
        package let outcome: PrewarmOutcome

        package init(number: Int, outcome: PrewarmOutcome) {
            (self.number, self.outcome) = (number, outcome)
        }
    }

    package struct Failure: Codable, Sendable, Equatable {
        /// The source's URL as the entry spells it; empty if it is unknown.
        package let url: String
        /// A stable word for programs (docs/api.md, errors).
        package let code: String
        package let detail: String

        package init(url: String, code: String, detail: String) {
            self.url = url
            self.code = code
            self.detail = detail
        }
    }

    package var id: String
    /// When the list was added, in seconds since 1970; in lists of jobs only.
    package var added: Int64?
    /// `waiting`, `running`, `done` or `cancelled`.
    package var state: String
    package var total: Int
    /// Finished entries, failures included.
    package var done: Int
    package var failed: Int
    package var hits: Int
    package var new: Int
    /// Bytes of the renditions that are in the cache.
    package var bytes: Int
    /// The bytes by which the renditions are smaller than their sources.
    package var saved: Int
    /// The first failures; nil in lists of jobs.
    package var errors: [Failure]?
    /// Outcomes in the order of their arrival, starting at the requested one; nil if none was requested.
    package var results: [Result]?

    /// The most failures in ``errors``.
    package static let errorLimit = 100
    /// The most outcomes in ``results``.
    package static let resultLimit = 1000
    /// The most reports in a list of reports.
    package static let listLimit = 200
    /// How long individual outcomes are kept for polling clients: after the list ends or, in a cluster, after the last outcome.
    package static let resultTime: Duration = .seconds(3600)

    package init(
        id: String, added: Int64?, state: String, total: Int, done: Int, failed: Int, hits: Int, bytes: Int, saved: Int
    ) {
        self.id = id
        self.added = added
        self.state = state
        self.total = total
        self.done = done
        self.failed = failed
        self.hits = hits
        self.bytes = bytes
        self.saved = saved
        new = max(0, done - failed - hits)
    }
}

package struct PrewarmOutcome: Sendable, Hashable, Codable {
    package enum Kind: String, Sendable, Hashable, Codable {
        /// The rendition was in the cache.
        case hit
        /// The rendition was encoded for this entry.
        case new
        case failed
    }

    package var kind: Kind
    /// Bytes of the rendition; 0 for a failure.
    package var bytes = 0
    /// Bytes of the source; 0 if unknown.
    package var sourceBytes = 0
    /// The code of a failure, a stable word for programs (docs/api.md, errors), and its sentence.
    package var code: String?
    package var detail: String?

    package init(kind: Kind, bytes: Int = 0, sourceBytes: Int = 0) {
        self.kind = kind
        self.bytes = bytes
        self.sourceBytes = sourceBytes
    }

    package init(code: String, detail: String) {
        kind = .failed
        (self.code, self.detail) = (code, detail)
    }

    /// The bytes by which the rendition is smaller than its source.
    package var saved: Int { max(0, sourceBytes - bytes) }

    /// Reads an outcome from the database or a server's report.
    ///
    /// - Throws: An error if a byte count is out of range and sums over outcomes could overflow.
    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        kind = try fields.decode(Kind.self, forKey: .kind)
        bytes = try Self.byteCount(fields, .bytes)
        sourceBytes = try Self.byteCount(fields, .sourceBytes)
        code = try fields.decodeIfPresent(String.self, forKey: .code)
        detail = try fields.decodeIfPresent(String.self, forKey: .detail)
    }

    private static func byteCount(_ fields: KeyedDecodingContainer<CodingKeys>, _ key: CodingKeys) throws -> Int {
        let count = try fields.decode(Int.self, forKey: key)
        // Far above the size of any file. The sum of 2²³ such counts does not overflow an Int.
        guard (0...1 << 40).contains(count) else {
            throw DecodingError.dataCorruptedError(forKey: key, in: fields, debugDescription: "\(count) bytes")
        }
        return count
    }

    private enum CodingKeys: String, CodingKey {
        case kind = "result"
        case bytes
        case sourceBytes = "source_bytes"
        case code
        case detail
    }
}
