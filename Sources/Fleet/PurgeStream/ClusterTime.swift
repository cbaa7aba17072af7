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
    static func ask(_ context: ClusterContext, _ clock: SharedClock) async throws(RedisError) {
        let start = clock.monotonic
        var arguments: [any RedisArgument] = ["", ""]
        if let bounds = clock.known {
            // The query arrives later than it is sent.
            arguments = [bounds.earliest, bounds.latest + context.timings.commandLimit.milliseconds]
        }
        let reply = try await context.run(.script(script, keys: [context.keys.clock], arguments))
        clock.set(try reply.integer(in: 0...(1 << 53)), askedAt: start)
    }

    /// The boot id of this machine; empty if it is unknown.
    static let boot: String = {
        let number = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard number >= 0, let bytes = try? SharedDescriptor(OwnedDescriptor(taking: number)).read(36, at: 0) else { return "" }
        return String(decoding: bytes, as: UTF8.self)
    }()
}
