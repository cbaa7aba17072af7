internal import CSystem

/// Parses replies with hiredis, and copies them into values. Not thread-safe.
///
/// Nothing that the server sends is trusted: arrays, strings and nesting are bounded, and unknown reply types are errors.
final class ReplyReader {
    /// The size limit of a reply in bytes. The largest legitimate replies are pages of stream entries.
    private static let maxCount = 64 << 20

    private let functions = UnsafeMutablePointer<chiredis_functions>.allocate(capacity: 1)
    private let reader: UnsafeMutablePointer<redisReader>?
    private var pendingCount = 0

    init() {
        functions.initialize(to: chiredis_functions())
        reader = chiredis_create_reader(functions)
    }

    deinit {
        if let reader { redisReaderFree(reader) }
        functions.deallocate()
    }

    func append(_ bytes: UnsafeRawBufferPointer) throws(RedisError) {
        guard let reader, let base = bytes.baseAddress else { throw .unavailable("no memory is left for a parser") }
        pendingCount += bytes.count
        guard pendingCount <= Self.maxCount else { throw .nonsense("a reply of more than \(Self.maxCount) bytes") }
        guard redisReaderFeed(reader, base.assumingMemoryBound(to: CChar.self), bytes.count) == REDIS_OK else {
            throw .nonsense("it cannot be parsed")
        }
    }

    /// The next complete reply; nil if more bytes are needed.
    func next() throws(RedisError) -> RedisValue? {
        guard let reader else { throw .unavailable("no memory is left for a parser") }
        var failed: Int32 = 0
        let reply = chiredis_next_reply(reader, &failed)
        guard failed == 0 else { throw .nonsense("it cannot be parsed") }
        guard let reply else { return nil }
        defer { freeReplyObject(reply) }
        pendingCount = Int(reader.pointee.len) - Int(reader.pointee.pos)
        return try Self.value(reply.pointee, depth: 0)
    }

    private static func value(_ reply: redisReply, depth: Int) throws(RedisError) -> RedisValue {
        switch reply.type {
        case REDIS_REPLY_NIL: return .none
        case REDIS_REPLY_INTEGER: return .integer(Int64(reply.integer))
        case REDIS_REPLY_STRING: return .bytes(Array(bytes(reply)))
        case REDIS_REPLY_STATUS: return .status(String(decoding: bytes(reply), as: UTF8.self))
        case REDIS_REPLY_ERROR: return .error(RedisRefusal(bytes(reply)))
        case REDIS_REPLY_ARRAY:
            guard depth < 8 else { throw .nonsense("arrays that are nested too deeply") }
            var elements: [RedisValue] = []
            elements.reserveCapacity(Int(reply.elements))
            for index in 0..<Int(reply.elements) {
                guard let element = reply.element?[index] else { throw .nonsense("an array without an element") }
                elements.append(try value(element.pointee, depth: depth + 1))
            }
            return .array(elements)
        default: throw .nonsense("a reply of an unknown type")
        }
    }

    private static func bytes(_ reply: redisReply) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: reply.str, count: Int(reply.len))
    }
}
