import Testing

@testable import Cluster

@Suite("Purges decide which work they overtook") struct PurgeHistoryTests {
    @Test func aPurgeOvertakesWorkThatBeganBeforeIt() {
        let history = PurgeHistory()
        history.insert(StreamID(5, 0), .url("https://a/1"))
        #expect(!history.isValid(since: StreamID(4, 9), sourceURL: "https://a/1", object: nil))
        #expect(history.isValid(since: StreamID(5, 0), sourceURL: "https://a/1", object: nil))
        #expect(history.isValid(since: .zero, sourceURL: "https://a/2", object: nil))
        history.insert(StreamID(6, 0), .prefix("https://a/"))
        #expect(!history.isValid(since: StreamID(5, 0), sourceURL: "https://a/2", object: nil))
        #expect(history.cover(of: "https://a/2") == StreamID(6, 0) && history.cover(of: "https://b/") == .zero)
        history.insert(StreamID(7, 0), .object("x"))
        #expect(!history.isValid(since: StreamID(6, 0), sourceURL: "https://b/", object: "x"))
        #expect(history.isValid(since: StreamID(6, 0), sourceURL: "https://b/", object: "y"))
        history.insert(StreamID(8, 0), .all)
        #expect(!history.isValid(since: StreamID(7, 0), sourceURL: "https://c/", object: nil))
    }

    @Test func purgesMayComeOutOfOrderAndTwice() {
        let history = PurgeHistory()
        history.insert(StreamID(9, 0), .url("u"))
        history.insert(StreamID(5, 0), .url("u"))
        history.insert(StreamID(5, 0), .url("u"))
        history.insert(StreamID(4, 0), .url("v"))
        #expect(history.cover(of: "u") == StreamID(9, 0))
        #expect(history.cover(of: "v") == StreamID(4, 0))
    }

    @Test func workFromBeforeTheOldestKnownPurgeCountsAsOvertaken() {
        let history = PurgeHistory(limit: 10)
        for number in 1...11 { history.insert(StreamID(UInt64(number), 0), .url("https://\(number)")) }
        #expect(!history.isValid(since: StreamID(4, 0), sourceURL: "https://other", object: nil))
        #expect(history.isValid(since: StreamID(5, 0), sourceURL: "https://other", object: nil))
        #expect(!history.isValid(since: StreamID(5, 0), sourceURL: "https://11", object: nil))
        #expect(history.cover(of: "https://1") == .zero && history.cover(of: "https://11") == StreamID(11, 0))
    }
}
