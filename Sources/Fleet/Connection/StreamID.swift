/// The id of an entry in a stream: milliseconds of the server's clock, and a number within the millisecond.
package struct StreamID: Sendable, Hashable, Comparable, CustomStringConvertible {
    package let milliseconds: UInt64
    package let sequence: UInt64

    /// A position before the first entry of any stream.
    package static let zero = StreamID(0, 0)

    package init(_ milliseconds: UInt64, _ sequence: UInt64) {
        self.milliseconds = milliseconds
        self.sequence = sequence
    }

    package init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let first = UInt64(parts[0]), let second = UInt64(parts[1]) else { return nil }
        self.init(first, second)
    }

    package var description: String { "\(milliseconds)-\(sequence)" }

    package static func < (left: StreamID, right: StreamID) -> Bool {
        (left.milliseconds, left.sequence) < (right.milliseconds, right.sequence)
    }
}

struct StreamEntry {
    let id: StreamID
    let fields: [String: [UInt8]]

    /// The entries in a reply to `XRANGE`, or under a stream in a reply to `XREAD`.
    static func entries(_ value: RedisValue) throws(RedisError) -> [StreamEntry] {
        var entries: [StreamEntry] = []
        for element in try value.elements() {
            let parts = try element.elements()
            guard parts.count == 2, let id = StreamID(try parts[0].text()) else { throw .nonsense("no entry of a stream") }
            var fields: [String: [UInt8]] = [:]
            for (name, value) in try parts[1].fields() {
                guard let content = try value.optionalBytes() else { throw .nonsense("a field without a value") }
                fields[name] = content
            }
            entries.append(StreamEntry(id: id, fields: fields))
        }
        return entries
    }

    /// The entries of the only stream in a reply to `XREAD` or `XREADGROUP`.
    static func read(_ value: RedisValue) throws(RedisError) -> [StreamEntry] {
        let streams = try value.elements()
        guard let stream = streams.first else { return [] }
        let parts = try stream.elements()
        guard streams.count == 1, parts.count == 2 else { throw .nonsense("entries of another stream") }
        return try entries(parts[1])
    }

    func text(_ name: String) -> String? {
        fields[name].flatMap { String(validating: $0, as: UTF8.self) }
    }
}
