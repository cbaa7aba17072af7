internal import Glibc
internal import SystemIO

/// The cluster's time: the server's clock, corrected so that it never contradicts a node that has kept the time meanwhile.
///
/// After a failover or a clock change, the server may be minutes off. The first node that notices corrects it to its own
/// bounds.
enum ClusterTime {
    /// Keys: the correction in milliseconds. Arguments: the node's bounds, empty if it has none. Returns milliseconds since
    /// 1970.
    static let script = RedisScript(
        .integer,
        """
        local clock = redis.call('TIME')
        local correction = tonumber(redis.call('GET', KEYS[1]) or '0')
        local now = clock[1] * 1000 + math.floor(clock[2] / 1000) + correction
        if ARGV[1] == '' then return now end
        local change = 0
        if now < tonumber(ARGV[1]) then change = tonumber(ARGV[1]) - now end
        if now > tonumber(ARGV[2]) then change = tonumber(ARGV[2]) - now end
        if change ~= 0 then redis.call('SET', KEYS[1], string.format('%.0f', correction + change)) end
        return now + change
        """)

    /// Queries the time, and passes it to the clock.
    ///
    /// - Returns: The correction of the server's clock, in milliseconds.
    static func ask(_ context: ClusterContext, _ clock: SharedClock) async throws(RedisError) -> Int64 {
        let (start, bounds) = (clock.monotonic, clock.known)
        var arguments: [any RedisArgument] = ["", ""]
        if let bounds {
            // The query arrives later than it is sent.
            let latest = bounds.latest + context.timings.commandLimit.milliseconds
            let (now, correction) = try await serverTime(context)
            // Equals the script's result, with two commands instead of three.
            if now >= bounds.earliest, now <= latest {
                clock.set(now, askedAt: start)
                return correction
            }
            arguments = [bounds.earliest, latest]
        }
        let reply = try await context.run(.script(script, keys: [context.keys.clock], arguments))
        clock.set(try reply.integer(in: 0...maxMilliseconds), askedAt: start)
        return try await serverTime(context).correction
    }

    /// The largest plausible time. Times computed from it fit into the ledger's numbers, too.
    static let maxMilliseconds: Int64 = 1 << 52

    /// The server's clock with its correction, in milliseconds since 1970, and the correction.
    private static func serverTime(
        _ context: ClusterContext
    ) async throws(RedisError) -> (now: Int64, correction: Int64) {
        let replies = try await context.run([
            RedisCommand(.array, ["TIME"]), RedisCommand(.bytesOrNone, ["GET", context.keys.clock]),
        ])
        let clock = try replies[0].elements()
        let offset = try replies[1].optionalBytes().map { String(decoding: $0, as: UTF8.self) } ?? "0"
        guard clock.count == 2, let seconds = Int64(try clock[0].text()), let microseconds = Int64(try clock[1].text()),
            let correction = Int64(offset), (0...(1 << 40)).contains(seconds), (0..<1_000_000).contains(microseconds),
            (-(1 << 53)...(1 << 53)).contains(correction)
        else { throw .nonsense("no time") }
        return (seconds * 1000 + microseconds / 1000 + correction, correction)
    }

    /// The boot id of this machine; empty if it is unknown.
    static let boot: String = {
        let number = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard number >= 0, let bytes = try? SharedDescriptor(OwnedDescriptor(taking: number)).read(36, at: 0) else { return "" }
        return String(decoding: bytes, as: UTF8.self)
    }()
}
