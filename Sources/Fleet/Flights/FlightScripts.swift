/// The steps of a flight that have to be atomic on the server.
///
/// A flight's key holds its lease, `L:token:`, to which `w` is appended once a caller on another node waits; later its record,
/// `R…`. A single key for both lets one command look up the record and take the lease.
enum FlightScripts {
    /// Marks a lease as awaited by a caller, and returns the previous value: nil, a lease or a record. Argument: the lifetime of a
    /// lease in ms, given to a marked lease that never expires, as in a copy of the server's data without lifetimes.
    static let await = RedisScript(
        .bytesOrNone,
        """
        local value = redis.call('GET', KEYS[1])
        if value and string.sub(value, 1, 1) == 'L' then
          if string.sub(value, -1) ~= 'w' then
            redis.call('SET', KEYS[1], value .. 'w', 'KEEPTTL')
          else
            redis.call('PEXPIRE', KEYS[1], ARGV[1], 'NX')
          end
        end
        return value
        """)

    /// Replaces an invalid record with a lease. Arguments: the record, the lease, its time in ms. Returns 1 or 0.
    static let replace = RedisScript(
        .integer,
        """
        if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
        redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
        return 1
        """)

    /// Prolongs a lease. Arguments: the lease, its time in ms. Returns 1, or 0 if it is lost.
    static let renew = RedisScript(
        .integer,
        """
        local value = redis.call('GET', KEYS[1])
        if value ~= ARGV[1] and value ~= ARGV[1] .. 'w' then return 0 end
        return redis.call('PEXPIRE', KEYS[1], ARGV[2])
        """)

    /// Ends a flight: replaces its lease with a record, or removes it, and notifies waiting callers. Arguments: the lease, the
    /// record, its lifetime in ms (0 removes the lease), the channel, the message. Returns 1, or 0 if the lease is lost.
    static let complete = RedisScript(
        .integer,
        """
        local value = redis.call('GET', KEYS[1])
        if value ~= ARGV[1] and value ~= ARGV[1] .. 'w' then return 0 end
        if ARGV[3] == '0' then
          redis.call('DEL', KEYS[1])
        else
          redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
        end
        if value ~= ARGV[1] then redis.call('PUBLISH', ARGV[4], ARGV[5]) end
        return 1
        """)
}

/// The value of a flight's key.
enum FlightValue: Equatable {
    case record(SharedRecord)
    /// A lease of any node, and whether its end will be announced.
    case lease(isAwaited: Bool)

    init?(_ bytes: [UInt8]) {
        if let record = SharedRecord(bytes) {
            self = .record(record)
        } else if bytes.starts(with: "L:".utf8), bytes.count < 512 {
            self = .lease(isAwaited: bytes.last == UInt8(ascii: "w"))
        } else {
            return nil
        }
    }
}
