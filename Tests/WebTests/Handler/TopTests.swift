import Fetch
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Web

@Suite("GET /top shows what has cost most") struct TopTests {
    private static let token = ["Authorization: Bearer secret"]

    @Test func aTableKeepsTheHeaviestOfAMillionKeys() {
        var table = HeavyHitters(limit: 100)
        for number in 0..<200_000 {
            table.add(1, to: "client \(number)")
            if number % 20 == 0 { table.add(3, to: "heavy") }
        }
        #expect(table.sums.count == 100)
        let heavy = table.sums["heavy"]
        #expect((heavy?.amount ?? 0) - (heavy?.error ?? 0) <= 30_000 && heavy?.amount ?? 0 >= 30_000)
        #expect(table.sums.values.allSatisfy { $0.amount >= $0.error && $0.error <= 230_000 / 100 })
        table.add(.max, to: "heavy")
        table.add(1, to: "heavy")
        #expect(table.sums["heavy"]?.amount == .max)
    }

    @Test(
        arguments: [
            ("/mp4/https://Example.com/A.gif?key=secret", "example.com", "example.com/A.gif"),
            ("/mp4,width=8/http://a.test:81/x?y=https://b.test/", "a.test", "a.test:81/x"),
            ("/mp4?url=https%3A%2F%2Fa.test%2Fb.gif%3Fkey%3Dsecret&width=8", "a.test", "a.test/b.gif"),
            ("/auto/http:/a.test/b.gif", "a.test", "a.test/b.gif"), ("/mp4/http://[::1]:80/a.gif", "[::1]", "[::1]:80/a.gif"),
            (
                "/mp4/http://a.test/%0A\(String(repeating: "b", count: 300))", "a.test",
                "a.test/?\(String(repeating: "b", count: 192))"
            ),
            ("/mp4", nil, nil), ("/object/00.mp4", nil, nil), ("/mp4/http://", nil, nil), ("", nil, nil),
            ("/mp4/http://a b/", nil, nil), ("/mp4/http://\(String(repeating: "a", count: 300))/", nil, nil),
        ] as [(String, String?, String?)])
    func theHostAndTheAddressAreThoseOfTheSource(_ target: String, _ host: String?, _ address: String?) {
        let source = UsageBoard.source(in: target)
        #expect(source?.host == host)
        #expect(source?.address == address)
    }

    @Test func requestsAreSummedUpByHostClientMountAndSource() async throws {
        let gif = GIFBuilder.animation(frames: 3)
        try await WebFixture.run(
            ["/a.gif": { _ in .ok(gif) }, "/m/b.gif": { _ in .ok(gif + [1]) }],
            { settings in
                settings.policy.adminToken = "secret"
                settings.policy.mounts["media"] = Mount(origin: try SourceURL("http://127.0.0.1:1/m/"))
            }
        ) { web async throws in
            func top(_ query: String) async throws -> [String: Int] {
                let response = try await web.request("GET", "/top?\(query)", headers: Self.token)
                #expect(response.status == 200, "\(response.text)")
                let entries = try #require(try response.json()["entries"] as? [[String: Any]])
                return Dictionary(
                    uniqueKeysWithValues: entries.compactMap { entry in
                        (entry["key"] as? String).flatMap { key in (entry["amount"] as? Int).map { (key, $0) } }
                    })
            }
            #expect(try await web.request("GET", web.target("mp4", "/a.gif")).status == 200)
            #expect(try await web.request("GET", "/media/b.mp4").status == 502)
            for _ in 0..<3 { #expect(try await web.request("GET", "/cache").status == 401) }
            try await waitUntil("the refusals") { try await top("by=refused&of=client") == ["127.0.0.1": 3] }
            #expect(try await top("by=misses&of=mount") == ["media": 1])
            #expect(try await top("by=misses&of=host") == ["127.0.0.1": 2])
            let address = try #require(web.target("mp4", "/a.gif").split(separator: "/", maxSplits: 2).last)
            #expect(try await top("by=misses&of=source") == [String(address.drop { $0 == "/" }): 1, "127.0.0.1/b.mp4": 1])
            #expect(try await top("by=cpu&of=source").count == 1)
            #expect(try await top("by=cpu&of=host") == ["127.0.0.1": 3])
            #expect(try await top("") == ["127.0.0.1": 3])
            #expect((try await top("by=bytes&of=host")["127.0.0.1"]).map { $0 > 100 } == true)
            #expect(web.log.all.first { $0.message == "answered" }?.metadata["client"] == "127.0.0.1")
            #expect(web.log.all.first { $0.message == "answered" }?.metadata["source_bytes"] == "\(gif.count)")
            #expect(web.log.all.first { $0.message == "request failed" }?.metadata["client"] == "127.0.0.1")
            for bad in ["by=x", "of=x", "limit=0", "limit=101", "x=1", "by=cpu&by=cpu"] {
                #expect(try await web.request("GET", "/top?\(bad)", headers: Self.token).status == 400, "\(bad)")
            }
            #expect(try await web.request("GET", "/top").status == 401)
        }
    }

    @Test(arguments: [900, 1_900, 2_000]) func shortConversionsAddUp(_ microseconds: Int) {
        let board = UsageBoard(mounts: [:], clock: .system)
        for _ in 0..<100 { board.converted(.microseconds(microseconds), host: "a.test", for: nil) }
        #expect(board.top(.cpu, of: .host, limit: 10).map(\.amount) == [Int64(microseconds / 10)])
    }

    @Test func rememberedRefusalsCountAsOftenAsOthers() async throws {
        let paths: [String: LoopbackOrigin.Handler] = ["/a.gif": { _ in .redirect(to: "http://127.0.0.2/a.gif") }]
        try await WebFixture.run(paths) { web async throws in
            for _ in 0..<64 { #expect(try await web.request("GET", web.target("mp4", "/a.gif")).status == 403) }
            // One hit in 32 is counted, for all.
            try await waitUntil("the refusals") {
                let refused = web.usage.top(.refused, of: .client, limit: 1).first?.amount ?? 0
                return (33...64).contains(refused)
            }
        }
    }

    @Test func sumsEndWithTheirMinutes() {
        let time = AdvancingClock()
        let board = UsageBoard(mounts: [:], clock: time.clock)
        board.converted(.milliseconds(30), host: "a.test", for: nil)
        time.pass(120)
        board.converted(
            .milliseconds(50), host: "b.test", for: UsageBoard.Origin(client: "192.0.2.1", target: "/mp4/http://b.test/a.gif?b")
        )
        #expect(board.top(.cpu, of: .host, limit: 10).map(\.key) == ["b.test", "a.test"])
        #expect(board.top(.cpu, of: .host, limit: 1).map(\.amount) == [50])
        #expect(board.top(.cpu, of: .client, limit: 10).map(\.key) == ["192.0.2.1"])
        #expect(board.top(.cpu, of: .source, limit: 10).map(\.key) == ["b.test/a.gif"])
        #expect(board.top(.cpu, of: .mount, limit: 10).isEmpty)
        time.pass(240)
        #expect(board.top(.cpu, of: .host, limit: 10).map(\.key) == ["b.test"])
        time.pass(240)
        #expect(board.top(.cpu, of: .host, limit: 10).isEmpty)
    }

    @Test func threadsThatReadTheClockBeforeAMinuteEndedCountInTheNext() {
        let seconds = Mutex<UInt64>(0)
        let board = UsageBoard(
            mounts: [:],
            clock: TimeSource(unixSeconds: { 0 }, monotonicNanoseconds: { seconds.withLock { $0 } * 1_000_000_000 }))
        func convert(at second: UInt64, _ host: String) {
            seconds.withLock { $0 = second }
            board.converted(.milliseconds(1), host: host, for: nil)
        }
        convert(at: 10, "first.test")
        for _ in 0..<10 {
            convert(at: 120, "late.test")
            convert(at: 119, "early.test")
        }
        #expect(Set(board.top(.cpu, of: .host, limit: 10).map(\.key)) == ["first.test", "late.test", "early.test"])
    }
}
