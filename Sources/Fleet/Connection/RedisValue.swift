enum RedisValue: Sendable, Equatable {
    case none
    case status(String)
    case integer(Int64)
    case bytes([UInt8])
    case array([RedisValue])
    case error(RedisRefusal)

    /// The integer; throws for anything else.
    func integer(in range: ClosedRange<Int64> = .min ... .max) throws(RedisError) -> Int64 {
        switch self {
        case .integer(let value) where range.contains(value): return value
        case .integer: throw .nonsense("an integer out of range")
        default: throw other(than: "an integer")
        }
    }

    /// The bytes, or nil; throws for anything else.
    func optionalBytes() throws(RedisError) -> [UInt8]? {
        switch self {
        case .none: return nil
        case .bytes(let bytes): return bytes
        default: throw other(than: "a string")
        }
    }

    /// The elements; none for nil. Throws for anything else.
    func elements() throws(RedisError) -> [RedisValue] {
        switch self {
        case .none: return []
        case .array(let elements): return elements
        default: throw other(than: "an array")
        }
    }

    /// The fields of an array that alternates names and values, such as a hash; empty for nil. Throws for anything else.
    func fields() throws(RedisError) -> [String: RedisValue] {
        let elements = try elements()
        guard elements.count.isMultiple(of: 2) else { throw .nonsense("a field without a value") }
        var fields: [String: RedisValue] = [:]
        for index in stride(from: 0, to: elements.count, by: 2) { fields[try elements[index].text()] = elements[index + 1] }
        return fields
    }

    /// The bytes as text; throws for nil and anything else.
    func text() throws(RedisError) -> String {
        guard case .bytes(let bytes) = self else { throw other(than: "a string") }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .nonsense("a text that is not UTF-8") }
        return text
    }

    func succeeded() throws(RedisError) {
        if case .error(let refusal) = self { throw .refused(refusal) }
    }

    private func other(than expected: String) -> RedisError {
        if case .error(let refusal) = self { return .refused(refusal) }
        return .nonsense("not \(expected)")
    }
}

/// The replies that a command can have, apart from errors. A reply of another type shows that the connection carries replies
/// to other commands, or no replies at all.
enum ReplyShape: Sendable, Equatable {
    case status
    case integer
    case bytesOrNone
    /// `SET … NX GET`, `XADD … NOMKSTREAM`: a status, bytes or nil.
    case statusOrBytes
    case array
    /// `XREAD` and similar commands: nil if no entries arrived.
    case arrayOrNone

    func matches(_ value: RedisValue) -> Bool {
        switch (self, value) {
        case (_, .error), (.status, .status), (.integer, .integer), (.array, .array), (.arrayOrNone, .array),
            (.arrayOrNone, .none), (.bytesOrNone, .bytes), (.bytesOrNone, .none), (.statusOrBytes, .status),
            (.statusOrBytes, .bytes), (.statusOrBytes, .none):
            true
        default: false
        }
    }
}

/// A Lua script, which the server runs atomically.
struct RedisScript: Sendable, Equatable {
    let shape: ReplyShape
    let text: String

    init(_ shape: ReplyShape, _ text: String) {
        (self.shape, self.text) = (shape, text)
    }
}

/// A command: its name, its arguments and the shape of its reply.
struct RedisCommand: Sendable, Equatable {
    let arguments: [[UInt8]]
    let shape: ReplyShape

    init(_ shape: ReplyShape, _ arguments: [any RedisArgument]) {
        self.arguments = arguments.map(\.argument)
        self.shape = shape
    }

    /// Creates a call of a script, with the script's text.
    static func script(_ script: RedisScript, keys: [String], _ arguments: [any RedisArgument]) -> RedisCommand {
        let names: [any RedisArgument] = ["EVAL", script.text, keys.count]
        return RedisCommand(script.shape, names + keys + arguments)
    }

    /// The bytes to send: an array of strings in the protocol of Redis.
    var bytes: [UInt8] {
        arguments.reduce(into: Array("*\(arguments.count)\r\n".utf8)) { bytes, argument in
            bytes += "$\(argument.count)\r\n".utf8
            bytes += argument
            bytes += "\r\n".utf8
        }
    }
}

/// An argument of a command: text, a number, bytes, or a time in whole milliseconds, at least one.
protocol RedisArgument: Sendable {
    var argument: [UInt8] { get }
}

extension String: RedisArgument {
    var argument: [UInt8] { Array(utf8) }
}

extension Int: RedisArgument {
    var argument: [UInt8] { Array(String(self).utf8) }
}

extension Int64: RedisArgument {
    var argument: [UInt8] { Array(String(self).utf8) }
}

extension [UInt8]: RedisArgument {
    var argument: [UInt8] { self }
}

extension Duration: RedisArgument {
    var argument: [UInt8] { max(1, milliseconds).argument }
}

extension Duration {
    /// The duration in whole milliseconds, clamped to a range from 0 to a century.
    package var milliseconds: Int64 {
        let (seconds, attoseconds) = max(.zero, min(self, .seconds(100 * 366 * 86_400))).components
        return seconds * 1000 + attoseconds / 1_000_000_000_000_000
    }
}
