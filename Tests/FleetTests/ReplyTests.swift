import Store
import TestSupport
import Testing

@testable import Fleet

@Suite("What a server sends is never trusted") struct ReplyTests {
    /// The replies in the bytes, which arrive in pieces of `size`.
    private func replies(_ text: [UInt8], size: Int = 1 << 20) throws(RedisError) -> [RedisValue] {
        let reader = ReplyReader()
        var values: [RedisValue] = []
        for first in stride(from: 0, to: text.count, by: size) {
            let piece = Array(text[first..<min(first + size, text.count)])
            try piece.withUnsafeBytes { buffer in Result { () throws(RedisError) in try reader.append(buffer) } }.get()
            while let value = try reader.next() { values.append(value) }
        }
        return values
    }

    @Test(arguments: [nil, "-1", "9007199254740993", "x"])
    func aPurgeIsMadeAtAPlausibleTime(_ time: String?) throws {
        var fields = ["k": Array("u".utf8), "v": Array("https://a/".utf8)]
        fields["t"] = time.map { Array($0.utf8) }
        let ids = [StreamID(7, 0): 7, StreamID(.max, 0): 1 << 53 as Int64]
        for (id, expected) in ids { #expect(StreamEntry(id: id, fields: fields).purge?.madeAt == expected) }
    }

    private let sample = Array("+OK\r\n:42\r\n$3\r\na\0b\r\n$-1\r\n*2\r\n:1\r\n*1\r\n$0\r\n\r\n-OOM out of memory\r\n".utf8)

    @Test(arguments: [1, 3, 1000]) func everyKindOfReplyIsRead(_ size: Int) throws {
        let values = try replies(sample, size: size)
        #expect(
            values == [
                .status("OK"), .integer(42), .bytes([97, 0, 98]), .none, .array([.integer(1), .array([.bytes([])])]),
                .error(RedisRefusal("OOM out of memory".utf8)),
            ])
    }

    @Test(arguments: [
        "HTTP/1.1 400 Bad Request\r\n\r\n", "*2147483647\r\n", "*65537\r\n", "$-2\r\n", "*-2\r\n", ":99999999999999999999\r\n",
        "$99999999999999999999\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
    ])
    func nonsenseIsAnError(_ text: String) {
        #expect(throws: RedisError.self) {
            if try replies(Array(text.utf8)).isEmpty { throw RedisError.nonsense("incomplete") }
        }
    }

    @Test func damagedRepliesNeverTrap() {
        var numbers = SeededNumbers(seed: 7)
        for _ in 0..<20_000 {
            var bytes = sample + sample
            for _ in 0..<Int.random(in: 1...4, using: &numbers) {
                let index = Int.random(in: 0..<bytes.count, using: &numbers)
                switch Int.random(in: 0...2, using: &numbers) {
                case 0: bytes[index] = UInt8.random(in: .min ... .max, using: &numbers)
                case 1: bytes.remove(at: index)
                default: bytes.insert(UInt8(ascii: "9"), at: index)
                }
            }
            guard let values = try? replies(bytes, size: Int.random(in: 1...40, using: &numbers)) else { continue }
            for value in values {
                _ = try? value.integer(in: 0...10)
                _ = try? value.text()
                _ = try? StreamEntry.entries(value)
                _ = try? StreamEntry.read(value)
                if case .bytes(let bytes) = value { _ = FlightValue(bytes) }
            }
        }
    }

    @Test func repliesOfTheWrongTypeAreErrors() {
        #expect(throws: RedisError.nonsense("not an integer")) { try RedisValue.bytes([49]).integer() }
        #expect(throws: RedisError.nonsense("an integer out of range")) { try RedisValue.integer(2).integer(in: 0...1) }
        #expect(throws: RedisError.refused(RedisRefusal("READONLY x".utf8))) {
            try RedisValue.error(RedisRefusal("READONLY x".utf8)).elements()
        }
        #expect(!ReplyShape.integer.matches(.bytes([])) && ReplyShape.integer.matches(.integer(1)))
    }

    @Test(arguments: [
        ("OOM command not allowed", RedisRefusal.Kind.outOfMemory), ("READONLY You can't", .readOnly), ("LOADING x", .loading),
        ("NOAUTH x", .authentication), ("WRONGPASS x", .authentication), ("MOVED 1 h:1", .moved),
        ("ERR x", .other), ("", .other), ("MISCONF x", .readOnly),
    ])
    func errorRepliesAreStates(_ text: String, _ kind: RedisRefusal.Kind) {
        #expect(RedisRefusal(text.utf8).kind == kind)
    }

    @Test func theWordsOfTheServerAreQuotedWithoutArguments() {
        #expect(
            RedisRefusal("ERR max number of clients reached".utf8).description.contains("(ERR max number of clients reached)"))
        let unknown = RedisRefusal("ERR unknown command 'AUTH', with args beginning with: 'secret'".utf8)
        #expect(unknown.description.contains("unknown command 'AUTH'") && !unknown.description.contains("secret"))
        let hostile = RedisRefusal("ERR \u{1b}[31m\nfake line ".utf8 + Array(repeating: UInt8(ascii: "x"), count: 10_000))
        #expect(hostile.description.utf8.count < 300 && !hostile.description.contains("\n"))
    }

    @Test func aCommandIsAnArrayOfStringsOfAnyBytes() {
        let command = RedisCommand(.status, ["SET", "ü", [0, 13, 10] as [UInt8], "", 12])
        #expect(command.bytes == Array("*5\r\n$3\r\nSET\r\n$2\r\nü\r\n$3\r\n\0\r\n\r\n$0\r\n\r\n$2\r\n12\r\n".utf8))
    }

    @Test func recordsSurviveTheirEncodingAndDamageIsFound() throws {
        var record = SharedRecord.test("abc123")
        record.began = 12
        #expect(SharedRecord(record.bytes) == record)
        record.outcome = .failure(code: "source_gone", details: [0, 255])
        record.times.freshFor = nil
        record.times.clientFreshFor = 30
        #expect(SharedRecord(record.bytes) == record)
        for count in 0..<record.bytes.count { #expect(SharedRecord(Array(record.bytes.prefix(count))) == nil) }
        #expect(SharedRecord(record.bytes + [0]) == nil)
        var numbers = SeededNumbers(seed: 3)
        for _ in 0..<5000 {
            var bytes = record.bytes
            bytes[Int.random(in: 0..<bytes.count, using: &numbers)] = .random(in: .min ... .max, using: &numbers)
            _ = FlightValue(bytes)
        }
        let hostile: [any RedisArgument] = ["object", "../etc", "mp4", "", "", 1, "", 0, 1]
        #expect(SharedRecord(FieldCoding.encode(SharedRecord.kind, hostile)) == nil)
    }

    @Test func messagesSurviveTheirEncoding() {
        let messages = [
            ClusterMessage.flight(key: "k", value: [1]), .acknowledged(StreamID(1, 2)), .prewarm, .registered("n"), .left("n"),
        ]
        for message in messages {
            #expect(ClusterMessage(message.bytes) == message)
        }
        #expect(ClusterMessage([]) == nil && ClusterMessage([1, 2, 3]) == nil)
    }
}
