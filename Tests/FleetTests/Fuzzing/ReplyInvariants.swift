#if !FUZZ
    @testable import Fleet
#endif

/// What must hold of the parser of Redis replies, whatever a server sends and however it is split. The fuzzer looks for bytes for
/// which it does not hold.
enum ReplyInvariants {
    private struct Outcome: Equatable {
        var values: [RedisValue] = []
        var isRefused = false
    }

    /// The first invariant that does not hold, in words; nil if all do.
    ///
    /// - Parameter bytes: A byte that says how the replies are split, and the replies.
    static func violation(_ bytes: UnsafeRawBufferPointer) -> String? {
        guard let first = bytes.first else { return nil }
        let stream = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
        guard !stream.isEmpty else { return nil }
        let whole = read(stream, piece: stream.count)
        let split = read(stream, piece: 1 + Int(first) % 11)
        guard whole == split else { return "a split changes the replies: \(whole) \(split)" }
        for value in whole.values {
            if let violation = content(value, depth: 0, limit: stream.count) { return violation }
        }
        return nil
    }

    private static func read(_ stream: UnsafeRawBufferPointer, piece: Int) -> Outcome {
        let reader = ReplyReader()
        var outcome = Outcome()
        var rest = stream[...]
        do throws(RedisError) {
            while !rest.isEmpty {
                try reader.append(UnsafeRawBufferPointer(rebasing: rest.prefix(piece)))
                rest = rest.dropFirst(piece)
                while let value = try reader.next() { outcome.values.append(value) }
            }
        } catch {
            outcome.isRefused = true
        }
        return outcome
    }

    /// A value has no more than was sent, and each way to read it gives a value or an error.
    private static func content(_ value: RedisValue, depth: Int, limit: Int) -> String? {
        _ = try? value.integer(in: 0...1)
        _ = try? value.text()
        _ = try? value.optionalBytes()
        _ = try? value.succeeded()
        switch value {
        case .bytes(let bytes): return bytes.count <= limit ? nil : "\(bytes.count) bytes"
        case .array(let elements):
            guard depth < 8 else { return "nested too deeply" }
            guard elements.count <= limit else { return "\(elements.count) elements" }
            for element in elements {
                if let violation = content(element, depth: depth + 1, limit: limit) { return violation }
            }
            return nil
        case .none, .status, .integer, .error: return nil
        }
    }
}

/// The first inputs of the fuzzer.
enum ReplySeeds {
    static let all: [[UInt8]] = [
        "+OK\r\n", "-NOSCRIPT No matching script.\r\n", ":-42\r\n", "$5\r\nhello\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n",
        "*3\r\n:1\r\n$2\r\nab\r\n*1\r\n+x\r\n",
        "*1\r\n*2\r\n$6\r\nstream\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n",
        "%1\r\n+a\r\n:1\r\n", "~1\r\n,1.5\r\n", "#t\r\n_\r\n", "(123456789012345678901\r\n", "=7\r\ntxt:abc\r\n",
        ">1\r\n+p\r\n",
        ":9223372036854775808\r\n", "$9999999999\r\n", "*4294967296\r\n", "!5\r\nERR x\r\n", "-MOVED 1 127.0.0.1:1\r\n+A\r\n",
    ].map { [2] + Array($0.utf8) }
}
