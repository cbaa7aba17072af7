internal import SystemIO

/// Prewarm lists on which all nodes work: a stream with one consumer group, and counters per list.
///
/// An entry belongs to the node that claimed it until that node finishes it or stops renewing the claim. It counts once, even
/// if two nodes have worked on it.
package final class SharedPrewarm: Sendable {
    /// A claimed entry.
    package struct Ticket: Sendable, Hashable {
        /// The entry's id in the stream.
        package let id: String
        /// The list's id.
        package let list: String
        /// The entry as it was added.
        package let payload: [UInt8]
        /// Whether this ticket is the final report to the callback. There is no payload then.
        package let isReport: Bool
    }

    /// The progress of a list.
    package struct Progress: Sendable, Equatable {
        package var total: Int64
        /// Entries finished without an error.
        package var done: Int64
        package var failed: Int64
        /// Those of ``done`` whose renditions existed before.
        package var hits: Int64
        package var bytes: Int64
        /// The bytes by which the renditions are smaller than their sources.
        package var saved: Int64
        /// The first errors, at most ``maxErrors``.
        package var errors: [Failure]
        /// Where the end of the list is reported.
        package var callback: String?
    }

    package static let maxErrors = 100
    /// Larger numbers are not real. Sums of them cannot overflow.
    private static let maxNumber: Int64 = 1 << 53
    private static let batchSize = 200
    private static let listTime: Duration = .seconds(7 * 86_400)

    private let context: ClusterContext
    private var keys: ClusterKeys { context.keys }

    /// How long single outcomes are kept after the last one, for a client that polls.
    private static let resultTime: Duration = .seconds(3600)

    /// Counts an entry once, when its first node finishes it. The last entry of a list with a callback adds an entry that has the list reported.
    /// Keys: stream, list, errors, results. Arguments: group, entry, error, largest number of errors, lifetime in ms, result, its lifetime
    /// in ms, list, then each counter with the number to add; none for a report.
    private static let finish = RedisScript(
        .integer,
        """
        if redis.call('XACK', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
        redis.call('XDEL', KEYS[1], ARGV[2])
        if #ARGV < 9 or redis.call('EXISTS', KEYS[2]) == 0 then return 1 end
        if ARGV[6] ~= '' then
          redis.call('RPUSH', KEYS[4], ARGV[6])
          redis.call('PEXPIRE', KEYS[4], ARGV[7])
        end
        for index = 9, #ARGV, 2 do redis.call('HINCRBY', KEYS[2], ARGV[index], ARGV[index + 1]) end
        if ARGV[3] ~= '' and redis.call('LLEN', KEYS[3]) < tonumber(ARGV[4]) then
          redis.call('RPUSH', KEYS[3], ARGV[3])
        end
        local list = {}
        local fields = redis.call('HGETALL', KEYS[2])
        for index = 1, #fields, 2 do list[fields[index]] = fields[index + 1] end
        if tonumber(list.done) + tonumber(list.failed) >= tonumber(list.total) then
          redis.call('PEXPIRE', KEYS[2], ARGV[5])
          redis.call('PEXPIRE', KEYS[3], ARGV[5])
          if list.callback then redis.call('XADD', KEYS[1], '*', 'l', ARGV[8], 'r', '1') end
        end
        return 1
        """)

    /// Removes consumers without claims: this node, and those that have not been seen for a time. Keys: stream. Arguments: group, this
    /// node, the time in ms.
    private static let removeConsumers = RedisScript(
        .integer,
        """
        local count = 0
        for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
          local facts = {}
          for index = 1, #consumer, 2 do facts[consumer[index]] = consumer[index + 1] end
          if facts.pending == 0 and (facts.name == ARGV[2] or facts.idle > tonumber(ARGV[3])) then
            redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], facts.name)
            count = count + 1
          end
        end
        return count
        """)

    /// Runs of a node that end without a farewell leave a consumer behind.
    private static let consumerTime: Duration = .seconds(86_400)
    /// The largest number of lists that are reported.
    private static let maxLists = 200
    /// How long a request with an idempotency key may take before another node takes over.
    private static let requestTime: Duration = .seconds(30)

    init(_ context: ClusterContext) {
        self.context = context
    }

    /// Adds a list for all nodes, unless more than `limit` entries would be unfinished then. If this throws, no node processes an
    /// entry of the list.
    ///
    /// - Parameters:
    ///   - id: The list's id, which no other list has.
    ///   - payloads: Its entries, which the cluster does not interpret.
    ///   - request: The request that adds the list, if it may be repeated.
    ///   - callback: Where the end of the list is reported, by one node: see ``Ticket/isReport``.
    /// - Returns: Why the list was not added; nil if it was.
    package func add(
        _ id: String, _ payloads: [[UInt8]], limit: Int = .max, for request: PrewarmRequest? = nil, callback: String? = nil
    ) async throws(RedisError) -> PrewarmRefusal? {
        if let request, let known = try await begin(request, id) { return known }
        do throws(RedisError) {
            let length = RedisCommand(.integer, ["XLEN", keys.prewarm])
            let waiting = try await context.run(length).integer(in: 0...Self.maxNumber)
            if payloads.count > limit - Int(waiting) {
                await forget(request)
                return .full(waiting: Int(waiting), limit: limit)
            }
            try await add(id, payloads, callback)
        } catch {
            await forget(request)
            throw error
        }
        if let request {
            // A repetition within the time of the request finds the list by its id.
            let value = "\(request.content) \(id) added"
            _ = try? await context.run(
                RedisCommand(.status, ["SET", keys.prewarmRequest(request.key), value, "PX", Self.listTime]))
        }
        // Nodes look by themselves too.
        _ = try? await context.run(RedisCommand(.integer, ["PUBLISH", keys.channel, ClusterMessage.prewarm.bytes]))
        await removeOldLists()
        return nil
    }

    /// Reserves an idempotency key for a list. Returns nil if the list is to be added.
    private func begin(_ request: PrewarmRequest, _ id: String) async throws(RedisError) -> PrewarmRefusal? {
        let (key, value) = (keys.prewarmRequest(request.key), "\(request.content) \(id)")
        let reply = try await context.run(
            RedisCommand(.statusOrBytes, ["SET", key, value, "NX", "GET", "PX", Self.requestTime]))
        guard let bytes = try reply.optionalBytes() else { return nil }
        let words = String(decoding: bytes, as: UTF8.self).split(separator: " ")
        guard words.count >= 2, words[0] == request.content else { return .conflict }
        return words.count == 3 ? .known(id: String(words[1])) : .inProgress
    }

    private func forget(_ request: PrewarmRequest?) async {
        guard let request else { return }
        _ = try? await context.run(RedisCommand(.integer, ["DEL", keys.prewarmRequest(request.key)]))
    }

    private func add(_ id: String, _ payloads: [[UInt8]], _ callback: String?) async throws(RedisError) {
        let (list, limit) = (keys.prewarmList(id), context.timings.longLimit)
        do throws(RedisError) {
            // Without an expiry until it ends, so that no policy evicts it.
            let fields = ["total", "\(payloads.count)"] + ["done", "failed", "bytes", "hits", "saved"].flatMap { [$0, "0"] }
            let replies = try await context.run(
                [
                    RedisCommand(.integer, ["HSET", list] + fields + (callback.map { ["callback", $0] } ?? [])),
                    RedisCommand(.statusOrBytes, ["XADD", keys.prewarmLists, "*", "l", id]),
                ], within: limit)
            for reply in replies { try reply.succeeded() }
            for first in stride(from: 0, to: payloads.count, by: Self.batchSize) {
                let batch = payloads[first..<min(first + Self.batchSize, payloads.count)].map { payload in
                    RedisCommand(.statusOrBytes, ["XADD", keys.prewarm, "*", "l", id, "e", payload])
                }
                for reply in try await context.run(batch, within: limit) { try reply.succeeded() }
            }
        } catch {
            // Nodes drop entries without a list.
            _ = try? await context.run(RedisCommand(.integer, ["DEL", list]))
            throw error
        }
    }

    /// Removes lists that were added long ago and have not ended, and forgets those that have. Nodes drop entries without a list.
    private func removeOldLists() async {
        let oldest = StreamID(UInt64(max(0, context.time.unixMilliseconds - Self.listTime.milliseconds)), 0)
        let command = RedisCommand(.array, ["XRANGE", keys.prewarmLists, "-", oldest.description, "COUNT", "100"])
        guard let reply = try? await context.run(command),
            let entries = try? StreamEntry.entries(reply), !entries.isEmpty
        else { return }
        _ = try? await context.run([
            RedisCommand(.integer, ["DEL"] + entries.compactMap { $0.text("l") }.flatMap(names)),
            RedisCommand(.integer, ["XDEL", keys.prewarmLists] + entries.map(\.id.description)),
        ])
    }

    /// The names of all that is stored of a list, apart from its entries.
    private func names(_ id: String) -> [String] { [keys.prewarmList(id), keys.prewarmErrors(id), keys.prewarmResults(id)] }

    /// The latest lists, newest first, without their errors: with the time at which each was added, in milliseconds since 1970.
    package func lists() async throws(RedisError) -> [(id: String, added: Int64, progress: Progress)] {
        let reply = try await context.run(
            RedisCommand(.array, ["XREVRANGE", keys.prewarmLists, "+", "-", "COUNT", Self.maxLists]))
        let entries = try StreamEntry.entries(reply)
        if entries.isEmpty { return [] }
        let replies = try await context.run(
            entries.map { RedisCommand(.array, ["HGETALL", keys.prewarmList($0.text("l") ?? "")]) },
            within: context.timings.longLimit)
        var lists: [(id: String, added: Int64, progress: Progress)] = []
        for (entry, reply) in zip(entries, replies) {
            guard let id = entry.text("l"), let progress = try Self.progress(reply) else { continue }
            lists.append((id, Int64(clamping: entry.id.milliseconds), progress))
        }
        return lists
    }

    /// Ends the part of this node: takes it off the list of consumers unless it has claims, and those that have not been seen for long.
    func leave() async {
        let arguments: [any RedisArgument] = [keys.prewarmGroup, context.nodeName, Self.consumerTime]
        // Without the group there is nothing to leave.
        _ = try? await context.run(.script(Self.removeConsumers, keys: [keys.prewarm], arguments))
    }

    /// Claims entries for this node: those of dead nodes first, then new ones.
    ///
    /// - Parameter count: The most entries. A node should claim only what it works on now, so that all nodes share a list.
    package func claim(_ count: Int) async throws(RedisError) -> [Ticket] {
        let count = max(1, min(count, 100))
        do throws(RedisError) {
            return try await claimExisting(count)
        } catch {
            guard case .refused(let refusal) = error, refusal.kind == .noGroup else { throw error }
            // Fails if another node was faster.
            _ = try await context.run(
                RedisCommand(.status, ["XGROUP", "CREATE", keys.prewarm, keys.prewarmGroup, "0", "MKSTREAM"]))
            return try await claimExisting(count)
        }
    }

    private func claimExisting(_ count: Int) async throws(RedisError) -> [Ticket] {
        let (group, node) = (keys.prewarmGroup, context.nodeName)
        let parts = try await context.run(
            RedisCommand(
                .array, ["XAUTOCLAIM", keys.prewarm, group, node, context.timings.claimTime, "0-0", "COUNT", count])
        ).elements()
        guard parts.count >= 2 else { throw .nonsense("no claimed entries") }
        var entries = try StreamEntry.entries(parts[1])
        if entries.count < count {
            let arguments: [any RedisArgument] = [
                "XREADGROUP", "GROUP", group, node, "COUNT", count - entries.count, "STREAMS", keys.prewarm, ">",
            ]
            entries += try StreamEntry.read(try await context.run(RedisCommand(.arrayOrNone, arguments)))
        }
        return try await tickets(entries)
    }

    /// The tickets of entries whose lists exist; removes the other entries.
    private func tickets(_ entries: [StreamEntry]) async throws(RedisError) -> [Ticket] {
        if entries.isEmpty { return [] }
        let tickets = entries.map { entry in
            Ticket(
                id: entry.id.description, list: entry.text("l") ?? "", payload: entry.fields["e"] ?? [],
                isReport: entry.fields["r"] != nil)
        }
        let lists = Array(Set(tickets.map(\.list)))
        let replies = try await context.run(lists.map { RedisCommand(.integer, ["EXISTS", keys.prewarmList($0)]) })
        let existing = Set(zip(lists, replies).filter { $1 == .integer(1) }.map(\.0))
        for ticket in tickets where !existing.contains(ticket.list) { _ = try await finish(ticket, [], error: [], result: []) }
        return tickets.filter { existing.contains($0.list) }
    }

    /// Renews the claims on entries that are being worked on. To be called at least every third of ``ClusterTimings/claimTime``.
    package func renew(_ tickets: [Ticket]) async throws(RedisError) {
        if tickets.isEmpty { return }
        let command = ["XCLAIM", keys.prewarm, keys.prewarmGroup, context.nodeName, "0"] + tickets.map(\.id) + ["JUSTID"]
        try await context.run(RedisCommand(.array, command)).succeeded()
    }

    /// Counts an entry as finished.
    ///
    /// - Parameter result: The outcome as ``results(of:from:limit:)`` returns it; nothing is kept if it is empty.
    /// - Returns: False if another node has finished it before.
    @discardableResult
    package func finish(_ ticket: Ticket, _ outcome: Outcome, result: [UInt8] = []) async throws(RedisError) -> Bool {
        switch outcome {
        case .made(let isHit, let bytes, let saved):
            return try await finish(
                ticket, [("done", 1), ("hits", isHit ? 1 : 0), ("bytes", max(0, bytes)), ("saved", max(0, saved))], error: [],
                result: result)
        case .failed(let failure):
            return try await finish(ticket, [("failed", 1)], error: failure.bytes, result: result)
        }
    }

    /// Ends a report, which then is not claimed again.
    package func finishReport(_ ticket: Ticket) async throws(RedisError) {
        _ = try await finish(ticket, [], error: [], result: [])
    }

    /// - Parameters:
    ///   - counts: What to add to the counters of the list.
    ///   - error: Empty for success.
    private func finish(
        _ ticket: Ticket, _ counts: [(name: String, number: Int64)], error: [UInt8], result: [UInt8]
    ) async throws(RedisError) -> Bool {
        let arguments: [any RedisArgument] = [
            keys.prewarmGroup, ticket.id, error, Self.maxErrors, Self.listTime, result, Self.resultTime, ticket.list,
        ]
        let reply = try await context.run(
            .script(
                Self.finish, keys: [keys.prewarm] + names(ticket.list),
                arguments + counts.flatMap { [$0.name, "\($0.number)"] }))
        let isFirst = try reply.integer(in: 0...1) == 1
        if isFirst, !counts.isEmpty { context.meter.update { $0.prewarmed += 1 } }
        return isFirst
    }

    /// Cancels a list: no entry of it is claimed any more. Entries in progress are finished.
    package func cancel(_ id: String) async throws(RedisError) {
        try await context.run(RedisCommand(.integer, ["DEL"] + names(id))).succeeded()
    }

    /// The outcomes of a list in the order of their arrival, as they were given to ``finish(_:_:result:)``.
    package func results(of id: String, from first: Int, limit: Int) async throws(RedisError) -> [[UInt8]] {
        let (last, isOverflow) = first.addingReportingOverflow(limit - 1)
        let reply = try await context.run(
            RedisCommand(.array, ["LRANGE", keys.prewarmResults(id), first, isOverflow ? .max : last]))
        var results: [[UInt8]] = []
        for result in try reply.elements() { results.append(try result.optionalBytes() ?? []) }
        return results
    }

    /// How far a list is; nil if there is none.
    package func progress(of id: String) async throws(RedisError) -> Progress? {
        let replies = try await context.run([
            RedisCommand(.array, ["HGETALL", keys.prewarmList(id)]),
            RedisCommand(.array, ["LRANGE", keys.prewarmErrors(id), "0", Self.maxErrors - 1]),
        ])
        guard var progress = try Self.progress(replies[0]) else { return nil }
        for error in try replies[1].elements() {
            guard let failure = Failure(try error.optionalBytes() ?? []) else { throw .nonsense("no error of a list") }
            progress.errors.append(failure)
        }
        return progress
    }

    /// The counters of a list, without its errors; nil if it does not exist.
    private static func progress(_ reply: RedisValue) throws(RedisError) -> Progress? {
        let fields = try reply.fields()
        if fields.isEmpty { return nil }
        var numbers: [String: Int64] = [:]
        var callback: String?
        for (name, value) in fields {
            if name == "callback" {
                callback = try value.text()
                continue
            }
            guard let number = Int64(try value.text()), (0...maxNumber).contains(number) else {
                throw .nonsense("no number in a list")
            }
            numbers[name] = number
        }
        return Progress(
            total: numbers["total"] ?? 0, done: numbers["done"] ?? 0, failed: numbers["failed"] ?? 0,
            hits: numbers["hits"] ?? 0, bytes: numbers["bytes"] ?? 0, saved: numbers["saved"] ?? 0, errors: [],
            callback: callback)
    }
}

/// A request that its client may repeat, by digests of its idempotency key and of what it says.
package struct PrewarmRequest: Sendable, Equatable {
    package let key: String
    package let content: String

    package init(key: String, content: String) {
        (self.key, self.content) = (key, content)
    }
}

/// Why a list of entries was not accepted, by all nodes or by one that works alone.
package enum PrewarmRefusal: Error, Sendable, Equatable {
    /// The server is stopping.
    case stopping
    /// Too many entries are pending.
    case full(waiting: Int, limit: Int)
    /// The list could not be written to disk.
    case notStored(cause: String)
    /// The same request has added a list before.
    case known(id: String)
    /// The same request is being carried out.
    case inProgress
    /// The request has the idempotency key of another one.
    case conflict
}
