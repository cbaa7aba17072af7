internal import Fetch
package import HTTP
internal import Synchronization
package import SystemIO

/// The largest consumers of the last minutes, by client, source, host and mount (`GET /top`).
///
/// The HTTP engine passes finished requests on the thread of the access log. Only one hit in ``hitsPerSample`` is counted, with
/// the weight of all. Memory is bounded regardless of the number of clients and hosts. Any thread.
package final class UsageBoard: HTTPObserver {
    /// The quantity that is summed.
    package enum Measure: String, Codable, Sendable, CaseIterable {
        /// Processor time of workers, in milliseconds.
        case cpu
        /// Bytes of responses.
        case bytes
        case misses
        /// Responses with 401, 403, 429 and 503.
        case refused
    }

    /// The subject by which the sums are grouped.
    package enum Subject: String, Codable, Sendable, CaseIterable {
        case host, client, mount
        /// The address without scheme and query.
        case source
    }

    struct Origin: Sendable {
        /// The id of the request; nil if it is unknown.
        var id: String?
        var client: String?
        var target: String
    }

    fileprivate struct Minute: Sendable {
        let number: UInt64
        /// The tables by measure, then by subject.
        var tables: [HeavyHitters]
    }

    private struct State {
        /// The host of the origin by the name of the mount.
        var mounts: [String: String]
        /// The latest minutes, in ascending order.
        var minutes: [Minute] = []
        var hits = 0
    }

    /// The number of minutes in the sums, besides the current one.
    static let minutes = 5
    private static let hitsPerSample = 32
    private static let keysPerTable = 100
    private static let bytesPerAddress = 200

    private let state: Mutex<State>
    private let clock: TimeSource

    package init(mounts: [String: Mount], clock: TimeSource) {
        state = Mutex(State(mounts: Self.hosts(mounts)))
        self.clock = clock
    }

    /// Replaces the mounts.
    package func setMounts(_ mounts: [String: Mount]) {
        let hosts = Self.hosts(mounts)
        state.withLock { $0.mounts = hosts }
    }

    private static func hosts(_ mounts: [String: Mount]) -> [String: String] { mounts.mapValues(\.rule.root.host) }

    // MARK: Counting

    package func requestsFinished(_ batch: HTTPAccessBatch) {
        let number = minuteNumber
        state.withLock { state in
            batch.forEach { record in
                let use = RequestClass.CacheUse(record.cacheStatus)
                var weight: Int64 = 1
                if use == .hit || use == .stale {
                    state.hits += 1
                    guard state.hits >= Self.hitsPerSample else { return }
                    state.hits = 0
                    weight = Int64(Self.hitsPerSample)
                }
                let isRefused = [401, 403, 429, 503].contains(record.status)
                let bytes = Int64(record.bytes) * weight
                guard bytes > 0 || use == .miss || isRefused else { return }
                let target = String(decoding: record.target, as: UTF8.self)
                let keys = Self.keys(of: target, client: record.client?.description, state.mounts)
                Self.change(&state, number) { minute in
                    minute.add(.bytes, bytes, keys)
                    if use == .miss { minute.add(.misses, 1, keys) }
                    if isRefused { minute.add(.refused, weight, keys) }
                }
            }
        }
    }

    /// Adds the processor time of a conversion.
    ///
    /// - Parameter host: The host of the source; nil for an upload.
    func converted(_ cpu: Duration, host: String?, for origin: Origin?) {
        let number = minuteNumber
        let microseconds = Int64(cpu / .microseconds(1))
        state.withLock { state in
            var keys = Self.keys(of: origin?.target ?? "", client: origin?.client, state.mounts)
            keys[0] = host
            Self.change(&state, number) { $0.add(.cpu, microseconds, keys) }
        }
    }

    private var minuteNumber: UInt64 { clock.monotonicNanoseconds() / 60_000_000_000 }

    /// Changes the tables of the current minute.
    private static func change(_ state: inout State, _ number: UInt64, _ body: (inout Minute) -> Void) {
        // A thread that read the clock before the turn of a minute may come later.
        if state.minutes.last.map({ $0.number < number }) ?? true {
            let count = Measure.allCases.count * Subject.allCases.count
            state.minutes.append(
                Minute(number: number, tables: Array(repeating: HeavyHitters(limit: keysPerTable), count: count)))
            state.minutes.removeFirst(max(0, state.minutes.count - minutes - 1))
        }
        body(&state.minutes[state.minutes.count - 1])
    }

    /// The keys of a request, in the order of ``Subject``; nil for subjects that the request does not have.
    private static func keys(of target: String, client: String?, _ mounts: [String: String]) -> [String?] {
        let path = target[...].droppingBytes(1)
        let first = String(path.before(UInt8(ascii: "/")))
        guard let host = mounts[first] else {
            let source = source(in: target)
            return [source?.host, client, nil, source?.address]
        }
        return [host, client, first, cut(host + path.droppingBytes(first.utf8.count).before(UInt8(ascii: "?")))]
    }

    /// The host and the address, without scheme and query, of the source's URL in a target; nil if it has none.
    static func source(in target: String) -> (host: String, address: String)? {
        let text = target.utf8.contains(UInt8(ascii: "%")) ? PercentEncoding.decode(target[...]) ?? target : target
        guard let start = hostStart(in: text) else { return nil }
        let authority = text[start...].prefix { !"/?&#".contains($0) }
        let host = authority.first == "[" ? authority.prefix { $0 != "]" } + "]" : authority.prefix { $0 != ":" }
        guard (1...255).contains(host.utf8.count), host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        let address = authority.lowercased() + text[authority.endIndex...].prefix { !"?&#".contains($0) }
        return (host.lowercased(), cut(address))
    }

    private static func cut(_ address: String) -> String {
        String(decoding: address.utf8.prefix(bytesPerAddress).map { $0 < 0x20 ? UInt8(ascii: "?") : $0 }, as: UTF8.self)
    }

    /// The index after the scheme of the first web address in a target, at the earliest after the name of a format.
    private static func hostStart(in text: String) -> String.Index? {
        var rest = text[...].droppingBytes(2)
        while let colon = rest.utf8.firstIndex(of: UInt8(ascii: ":")) {
            let before = rest[..<colon].utf8.suffix(5).map { $0 | 0x20 }
            rest = rest[colon...].droppingBytes(1)
            guard before.suffix(4).elementsEqual("http".utf8) || before.elementsEqual("https".utf8) else { continue }
            let slashes = rest.utf8.prefix(2).prefix { $0 == UInt8(ascii: "/") }.count
            if slashes > 0 { return rest.droppingBytes(slashes).startIndex }
        }
        return nil
    }

    // MARK: Reading

    /// The keys with the largest sums of the last minutes, the largest first.
    func top(_ measure: Measure, of subject: Subject, limit: Int) -> [TopListing.Entry] {
        let number = minuteNumber
        let tables = state.withLock { state in
            state.minutes.filter { $0.number + UInt64(Self.minutes) >= number }.map { $0[measure, subject] }
        }
        var total = HeavyHitters(limit: Self.keysPerTable)
        for table in tables { total.merge(table) }
        // Microseconds are summed up, because many conversions take about a millisecond.
        let unit: Int64 = measure == .cpu ? 1000 : 1
        func rounded(_ sum: Int64) -> Int64 { sum / unit + (sum % unit * 2 >= unit ? 1 : 0) }
        return total.sums.filter { rounded($0.value.amount) > 0 }
            .sorted { ($1.value.amount, $0.key) < ($0.value.amount, $1.key) }.prefix(limit)
            .map { TopListing.Entry(key: $0.key, amount: rounded($0.value.amount), error: rounded($0.value.error)) }
    }
}

extension UsageBoard.Minute {
    fileprivate subscript(measure: UsageBoard.Measure, subject: UsageBoard.Subject) -> HeavyHitters {
        tables[Self.index(measure, subject)]
    }

    /// - Parameter keys: The keys of the subjects, in their order.
    fileprivate mutating func add(_ measure: UsageBoard.Measure, _ amount: Int64, _ keys: [String?]) {
        guard amount > 0 else { return }
        for (subject, key) in zip(UsageBoard.Subject.allCases, keys) {
            if let key { tables[Self.index(measure, subject)].add(amount, to: key) }
        }
    }

    private static func index(_ measure: UsageBoard.Measure, _ subject: UsageBoard.Subject) -> Int {
        let row = UsageBoard.Measure.allCases.firstIndex(of: measure) ?? 0
        return row * UsageBoard.Subject.allCases.count + (UsageBoard.Subject.allCases.firstIndex(of: subject) ?? 0)
    }
}

/// The body of `GET /top` (docs/api.md).
package struct TopListing: Codable, Sendable {
    package struct Entry: Codable, Sendable, Equatable {
        /// A host, the address of a client, the name of a mount, or a source without scheme and query.
        package let key: String
        /// Milliseconds, bytes or requests.
        package let amount: Int64
        /// The maximum by which the amount may be too large.
        package let error: Int64
    }

    package let by: UsageBoard.Measure
    package let of: UsageBoard.Subject
    /// The number of minutes in the sums, besides the current one.
    package let minutes: Int
    /// The entries, largest first.
    package let entries: [Entry]
}
