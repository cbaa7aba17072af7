internal import Foundation
package import SystemIO

/// Prewarm lists that all nodes process: a stream with one consumer group, and counters per list.
package final class SharedPrewarm: PrewarmLists {
    /// The largest plausible number. Sums of such numbers cannot overflow.
    private static let maxNumber: Int64 = 1 << 53
    private static let batchSize = 200
    private static let listTime: Duration = .seconds(7 * 86_400)

    package let arrivals = AsyncSignal()
    private let context: ClusterContext
    private var keys: ClusterKeys { context.keys }

    /// Counts an entry once, when its first node finishes it. The last entry of a list with a callback adds an entry for the
    /// report. Keys: stream, list, errors, results. Arguments: group, entry, error, largest number of errors, lifetime in ms,
    /// result, its lifetime in ms, list, then each counter with its increment; none for a report.
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

    /// Claims new entries, and moves those of some lists to the end of the stream. Keys: stream. Arguments: group, node, number
    /// of entries, largest number of entries to move, lists.
    private static let claimOthers = RedisScript(
        .array,
        """
        local skipped = {}
        for index = 5, #ARGV do skipped[ARGV[index]] = true end
        local found = {}
        local left = math.min(tonumber(ARGV[4]), redis.call('XLEN', KEYS[1]))
        while left > 0 and #found < tonumber(ARGV[3]) do
          local count = math.min(left, tonumber(ARGV[3]) - #found)
          local reply = redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', count, 'STREAMS', KEYS[1], '>')
          if not reply then break end
          for _, entry in ipairs(reply[1][2]) do
            if skipped[entry[2][2]] then
              redis.call('XADD', KEYS[1], '*', unpack(entry[2]))
              redis.call('XACK', KEYS[1], ARGV[1], entry[1])
              redis.call('XDEL', KEYS[1], entry[1])
              left = left - 1
            else
              found[#found + 1] = entry
            end
          end
        end
        return found
        """)

    /// Removes consumers without claims: this node's, and those idle for longer than a limit. Keys: stream. Arguments: group,
    /// this node, the limit in ms.
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

    /// The idle time after which a consumer is removed: a node that crashes leaves its consumer behind.
    private static let consumerTime: Duration = .seconds(86_400)
    /// How long a request with an idempotency key may take before another node takes over.
    private static let requestTime: Duration = .seconds(30)

    init(_ context: ClusterContext) {
        self.context = context
    }

    /// Adds a list for all nodes. If this throws, no node processes an entry of the list.
    ///
    /// - Parameter limit: The largest number of unfinished entries in the cluster.
    /// - Returns: Why the list was not added; nil if it was.
    package func add(_ order: PrewarmOrder, limit: Int) async throws(RedisError) -> PrewarmRefusal? {
        let request = order.request
        if let request, let known = try await begin(request, order.id) { return known }
        do throws(RedisError) {
            let length = try await context.run(RedisCommand(.integer, ["XLEN", keys.prewarm]))
            let waiting = Int(try length.integer(in: 0...Self.maxNumber))
            if order.payloads.count > limit - waiting {
                await forget(request)
                return .full(waiting: waiting, limit: limit)
            }
            await removeOldLists(before: try await add(order))
        } catch {
            await forget(request)
            throw error
        }
        if let request {
            // A repeated request then finds the list by its id.
            let value = "\(request.content) \(order.id) added"
            _ = try? await context.run(
                RedisCommand(.status, ["SET", keys.prewarmRequest(request.key), value, "PX", Self.listTime]))
        }
        // Nodes also poll.
        _ = try? await context.run(RedisCommand(.integer, ["PUBLISH", keys.channel, ClusterMessage.prewarm.bytes]))
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

    /// Returns the position of the new list among the lists.
    private func add(_ order: PrewarmOrder) async throws(RedisError) -> StreamID {
        let (id, payloads) = (order.id, order.payloads)
        let (list, limit) = (keys.prewarmList(id), context.timings.longLimit)
        do throws(RedisError) {
            // The list has no expiry until it ends, so that no policy evicts it.
            let fields = ["total", "\(payloads.count)"] + ["done", "failed", "bytes", "hits", "saved"].flatMap { [$0, "0"] }
            let replies = try await context.run(
                [
                    RedisCommand(.integer, ["HSET", list] + fields + (order.callback.map { ["callback", $0] } ?? [])),
                    RedisCommand(.statusOrBytes, ["XADD", keys.prewarmLists, "*", "l", id]),
                ], within: limit)
            for reply in replies { try reply.succeeded() }
            guard let position = StreamID(try replies[1].text()) else { throw .nonsense("no position of a list") }
            for first in stride(from: 0, to: payloads.count, by: Self.batchSize) {
                let batch = payloads[first..<min(first + Self.batchSize, payloads.count)].map { payload in
                    RedisCommand(.statusOrBytes, ["XADD", keys.prewarm, "*", "l", id, "e", payload])
                }
                for reply in try await context.run(batch, within: limit) { try reply.succeeded() }
            }
            return position
        } catch {
            // Nodes drop entries without a list.
            _ = try? await context.run(RedisCommand(.integer, ["DEL", list]))
            throw error
        }
    }

    /// Removes lists added long before another that have not ended, and forgets those that have. Nodes drop entries without a
    /// list.
    private func removeOldLists(before added: StreamID) async {
        // Redis's clock made the positions; this node's may be ahead by weeks.
        let age = UInt64(Self.listTime.milliseconds)
        let oldest = StreamID(added.milliseconds - min(age, added.milliseconds), 0)
        let command = RedisCommand(.array, ["XRANGE", keys.prewarmLists, "-", oldest.description, "COUNT", "100"])
        guard let reply = try? await context.run(command),
            let entries = try? StreamEntry.entries(reply), !entries.isEmpty
        else { return }
        _ = try? await context.run([
            RedisCommand(.integer, ["DEL"] + entries.compactMap { $0.text("l") }.flatMap(names)),
            RedisCommand(.integer, ["XDEL", keys.prewarmLists] + entries.map(\.id.description)),
        ])
    }

    /// The keys of a list's stored data, apart from its entries.
    private func names(_ id: String) -> [String] { [keys.prewarmList(id), keys.prewarmErrors(id), keys.prewarmResults(id)] }

    /// The latest lists, newest first, without their errors.
    package func lists() async throws(RedisError) -> [PrewarmReport] {
        let reply = try await context.run(
            RedisCommand(.array, ["XREVRANGE", keys.prewarmLists, "+", "-", "COUNT", PrewarmReport.listLimit]))
        let entries = try StreamEntry.entries(reply)
        if entries.isEmpty { return [] }
        let replies = try await context.run(
            entries.map { RedisCommand(.array, ["HGETALL", keys.prewarmList($0.text("l") ?? "")]) },
            within: context.timings.longLimit)
        var reports: [PrewarmReport] = []
        for (entry, reply) in zip(entries, replies) {
            guard let id = entry.text("l"), var report = try Self.report(id, reply) else { continue }
            report.added = Int64(clamping: entry.id.milliseconds / 1000)
            reports.append(report)
        }
        return reports
    }

    /// Leaves the consumer group: removes this node's consumer and long idle ones, unless they have claims.
    func leave() async {
        let arguments: [any RedisArgument] = [keys.prewarmGroup, context.nodeName, Self.consumerTime]
        // Without the group there is nothing to leave.
        _ = try? await context.run(.script(Self.removeConsumers, keys: [keys.prewarm], arguments))
    }

    /// Claims entries for this node: those of dead nodes first, then new ones. New entries of the other lists move to the end of
    /// the stream, up to ``batchSize`` at a time.
    package func claim(_ count: Int, except lists: Set<String> = []) async throws(RedisError) -> [PrewarmTicket] {
        let count = max(1, min(count, 100))
        do throws(RedisError) {
            return try await claimExisting(count, except: lists)
        } catch {
            guard case .refused(let refusal) = error, refusal.kind == .noGroup else { throw error }
            // Fails if another node was faster.
            _ = try await context.run(
                RedisCommand(.status, ["XGROUP", "CREATE", keys.prewarm, keys.prewarmGroup, "0", "MKSTREAM"]))
            return try await claimExisting(count, except: lists)
        }
    }

    private func claimExisting(_ count: Int, except lists: Set<String>) async throws(RedisError) -> [PrewarmTicket] {
        let (group, node) = (keys.prewarmGroup, context.nodeName)
        let parts = try await context.run(
            RedisCommand(
                .array, ["XAUTOCLAIM", keys.prewarm, group, node, context.timings.claimTime, "0-0", "COUNT", count])
        ).elements()
        guard parts.count >= 2 else { throw .nonsense("no claimed entries") }
        var entries = try StreamEntry.entries(parts[1])
        if entries.count < count, !lists.isEmpty {
            let arguments: [any RedisArgument] = [group, node, count - entries.count, Self.batchSize] + lists.sorted()
            entries += try StreamEntry.entries(
                try await context.run(.script(Self.claimOthers, keys: [keys.prewarm], arguments)))
        } else if entries.count < count {
            let arguments: [any RedisArgument] = [
                "XREADGROUP", "GROUP", group, node, "COUNT", count - entries.count, "STREAMS", keys.prewarm, ">",
            ]
            entries += try StreamEntry.read(try await context.run(RedisCommand(.arrayOrNone, arguments)))
        }
        return try await tickets(entries)
    }

    /// Returns the tickets of entries whose lists exist, and removes the other entries.
    private func tickets(_ entries: [StreamEntry]) async throws(RedisError) -> [PrewarmTicket] {
        if entries.isEmpty { return [] }
        let lists = Array(Set(entries.map { $0.text("l") ?? "" }))
        let replies = try await context.run(lists.map { RedisCommand(.array, ["HGETALL", keys.prewarmList($0)]) })
        var fields: [String: [String: RedisValue]] = [:]
        for (list, reply) in zip(lists, replies) { fields[list] = try reply.fields() }
        var tickets: [PrewarmTicket] = []
        for entry in entries {
            let (list, isReport) = (entry.text("l") ?? "", entry.fields["r"] != nil)
            let ticket = PrewarmTicket(
                id: entry.id.description, list: list, payload: entry.fields["e"] ?? [],
                callback: isReport ? try fields[list]?["callback"]?.text() : nil)
            if fields[list]?.isEmpty ?? true || isReport && ticket.callback == nil {
                _ = try await finish(ticket, nil, url: "")
            } else {
                tickets.append(ticket)
            }
        }
        return tickets
    }

    package func renew(_ tickets: [PrewarmTicket]) async throws(RedisError) {
        if tickets.isEmpty { return }
        let command = ["XCLAIM", keys.prewarm, keys.prewarmGroup, context.nodeName, "0"] + tickets.map(\.id) + ["JUSTID"]
        try await context.run(RedisCommand(.array, command)).succeeded()
    }

    @discardableResult
    package func finish(
        _ ticket: PrewarmTicket, _ result: PrewarmReport.Result?, url: String
    ) async throws(RedisError) -> Bool {
        // The increments of the list's counters. `done` counts only entries without an error.
        var counts: [(name: String, number: Int)] = []
        var (error, stored): ([UInt8], [UInt8]) = ([], [])
        if let result {
            let outcome = result.outcome
            if outcome.kind == .failed {
                counts = [("failed", 1)]
                error = PrewarmReport.Failure(url: url, code: outcome.code ?? "", detail: outcome.detail ?? "").encoded
            } else {
                let isHit = outcome.kind == .hit
                counts = [("done", 1), ("hits", isHit ? 1 : 0), ("bytes", outcome.bytes), ("saved", outcome.saved)]
            }
            if result.number >= 0, let text = try? JSONEncoder().encode(result) { stored = Array(text) }
        }
        let arguments: [any RedisArgument] = [
            keys.prewarmGroup, ticket.id, error, PrewarmReport.errorLimit, Self.listTime, stored, PrewarmReport.resultTime,
            ticket.list,
        ]
        return try await context.run(
            .script(
                Self.finish, keys: [keys.prewarm] + names(ticket.list),
                arguments + counts.flatMap { [$0.name, "\($0.number)"] })
        ).integer(in: 0...1) == 1
    }

    /// Cancels a list: its pending entries are no longer claimed. Entries in progress are finished.
    package func cancel(_ id: String) async throws(RedisError) {
        try await context.run(RedisCommand(.integer, ["DEL"] + names(id))).succeeded()
    }

    package func report(_ id: String, from first: Int?) async throws(RedisError) -> PrewarmReport? {
        var commands = [
            RedisCommand(.array, ["HGETALL", keys.prewarmList(id)]),
            RedisCommand(.array, ["LRANGE", keys.prewarmErrors(id), "0", PrewarmReport.errorLimit - 1]),
        ]
        // Read after the counters, so that a list reported as done lacks no outcome.
        if let first {
            let last = first.addingReportingOverflow(PrewarmReport.resultLimit - 1)
            commands.append(
                RedisCommand(.array, ["LRANGE", keys.prewarmResults(id), first, last.overflow ? .max : last.partialValue]))
        }
        let replies = try await context.run(commands)
        guard var report = try Self.report(id, replies[0]) else { return nil }
        var errors: [PrewarmReport.Failure] = []
        for error in try replies[1].elements() {
            guard let failure = PrewarmReport.Failure(encoded: try error.optionalBytes() ?? []) else {
                throw .nonsense("no error of a list")
            }
            errors.append(failure)
        }
        report.errors = errors
        if first != nil {
            report.results = try replies[2].elements().compactMap { element in
                try? JSONDecoder().decode(PrewarmReport.Result.self, from: Data(element.optionalBytes() ?? []))
            }
        }
        return report
    }

    /// Returns the counters of a list, without its errors; nil if the list does not exist.
    private static func report(_ id: String, _ reply: RedisValue) throws(RedisError) -> PrewarmReport? {
        let fields = try reply.fields()
        if fields.isEmpty { return nil }
        var numbers: [String: Int] = [:]
        for (name, value) in fields where name != "callback" {
            guard let number = Int64(try value.text()), (0...maxNumber).contains(number) else {
                throw .nonsense("no number in a list")
            }
            numbers[name] = Int(number)
        }
        let (total, failed) = (numbers["total"] ?? 0, numbers["failed"] ?? 0)
        let done = (numbers["done"] ?? 0) + failed
        return PrewarmReport(
            id: id, added: nil, state: done >= total ? "done" : "running", total: total, done: done, failed: failed,
            hits: numbers["hits"] ?? 0, bytes: numbers["bytes"] ?? 0, saved: numbers["saved"] ?? 0)
    }
}

extension PrewarmReport.Failure {
    private static let kind = UInt8(ascii: "F")
    private static let maxTextBytes = 1024
    private static let maxURLBytes = 8192

    /// The encoded failure, as stored for all nodes.
    var encoded: [UInt8] {
        FieldCoding.encode(
            Self.kind,
            [url.utf8.prefix(Self.maxURLBytes), code.utf8.prefix(Self.maxTextBytes), detail.utf8.prefix(Self.maxTextBytes)]
                .map { String(decoding: $0, as: UTF8.self) })
    }

    init?(encoded bytes: [UInt8]) {
        guard var reader = FieldReader(bytes, kind: Self.kind), let url = reader.text(), let code = reader.text(),
            let detail = reader.text()
        else { return nil }
        self.init(url: url, code: code, detail: detail)
    }
}
