import Fleet
import HTTPClient
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Prewarm

@Suite("The client of commands reports what a server answers", .timeLimit(.minutes(10))) struct ServerClientTests {
    @Test func aRequestCarriesTheTokenAndTheBody() throws {
        let origin = try LoopbackOrigin(["/base/prewarm": { _ in .response("202 Accepted", body: Array("{}".utf8)) }])
        defer { origin.stop() }
        let client = ServerClient(server: origin.url("/base/"), token: "secret")
        let answer = try client.send("POST", "/prewarm?retries=1", body: (text: "äb", type: "application/x-ndjson"))
        #expect(answer.status == 202 && answer.text == "{}" && answer.retryAfter == nil)
        let request = try #require(origin.requests.first)
        #expect(request.method == "POST" && request.target == "/base/prewarm?retries=1")
        #expect(request.headers["authorization"] == "Bearer secret")
        #expect(request.headers["content-type"] == "application/x-ndjson" && request.headers["content-length"] == "3")
    }

    /// `https://example.com/sitemaps/` and `https://example.com/sitemaps` are two resources.
    @Test func aURLWithoutATargetIsRequestedAsItIs() throws {
        let origin = try LoopbackOrigin(["/maps/": { _ in .ok([0x61]) }])
        defer { origin.stop() }
        #expect(try ServerClient(server: origin.url("/maps/"), token: nil).send("GET", "").text == "a")
        #expect(try ServerClient(server: origin.url("/"), token: nil).send("GET", "/maps/").text == "a")
    }

    @Test func theAddressOfASocketIsUnixAndItsPath() {
        #expect(ServerClient.socketPath("unix:/run/gifreel.sock") == "/run/gifreel.sock")
        #expect(ServerClient.socketPath("unix:") == nil && ServerClient.socketPath("http://a.test") == nil)
    }

    /// libcurl's own message names the port 80 of localhost, and no reason.
    @Test func aSocketThatCannotBeReachedIsReportedWithTheReason() throws {
        let directory = try ScratchDirectory()
        let file = try directory.write("file", "")
        for (path, reason) in [(directory.path("none"), "No such file or directory"), (file, "Connection refused")] {
            #expect(throws: HTTPError.unreachable(cause: "connect: \(reason)")) {
                try ServerClient(server: "unix:\(path)", token: nil).send("GET", "/readyz")
            }
        }
    }

    @Test func aRefusalCarriesTheTimeToWait() throws {
        let origin = try LoopbackOrigin(["/a": { _ in .status(503, ["Retry-After: 12"]) }])
        defer { origin.stop() }
        let answer = try ServerClient(server: origin.url(""), token: nil).send("GET", "/a")
        #expect(answer.status == 503 && answer.retryAfter == .seconds(12))
        #expect(origin.requests.first?.headers["authorization"] == nil)
    }

    @Test func redirectsAreFollowedOnlyWhereTheCallerSaysSo() throws {
        let origin = try LoopbackOrigin(["/a": { _ in .redirect(to: "/b") }, "/b": { _ in .ok([0x62]) }])
        defer { origin.stop() }
        let client = ServerClient(server: origin.url(""), token: nil)
        #expect(try client.send("GET", "/a").status == 302)
        #expect(try client.send("GET", "/a", followsRedirects: true).text == "b")
    }

    @Test func bytesOfABodyArriveUnchanged() throws {
        let bytes: [UInt8] = [0x1F, 0x8B, 0xFF, 0]
        let origin = try LoopbackOrigin(["/a": { _ in .ok(bytes) }])
        defer { origin.stop() }
        #expect(try ServerClient(server: origin.url(""), token: nil).send("GET", "/a").body == bytes)
    }

    @Test func aTokenWithALineBreakIsRefusedBeforeAnythingIsSent() throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        #expect(throws: HTTPError.self) {
            try ServerClient(server: origin.url(""), token: "a\r\nX-Evil: 1").send("GET", "/")
        }
        #expect(origin.connections == 0)
    }

    @Test func aServerThatDoesNotAnswerInTimeIsUnreachable() throws {
        let origin = try LoopbackOrigin(["/a": { _ in LoopbackAnswer(steps: [.hang]) }])
        defer { origin.stop() }
        let error = #expect(throws: HTTPError.self) {
            try ServerClient(server: origin.url(""), token: nil, timeout: 1).send("GET", "/a")
        }
        guard case .timedOut? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }
}

@Suite("A run on a server repeats what may pass and stops at what cannot", .timeLimit(.minutes(10))) struct RemoteBackendTests {
    private let entries = (0..<3).map { PrewarmEntry(url: "https://a.test/\($0).gif") }

    private static func report(_ results: String, state: String = "running") -> LoopbackAnswer {
        .ok(
            Array(
                #"{"id":"1","state":"\#(state)","total":3,"done":0,"failed":0,"hits":0,"new":0,"bytes":0,"saved":0,"errors":[],"results":[\#(results)]}"#
                    .utf8))
    }

    private static func outcome(_ number: Int) -> String {
        #"{"number":\#(number),"outcome":{"result":"new","bytes":\#(number),"source_bytes":9}}"#
    }

    private func run(
        _ entries: [PrewarmEntry]? = nil, on origin: LoopbackOrigin
    ) async -> (outcomes: [Int: PrewarmOutcome], error: String?) {
        let threads = WorkThreads(count: 1, limit: 4, name: "client")
        defer { threads.close() }
        let backend = RemoteBackend(
            server: origin.url(""), concurrency: 2, retries: 1,
            client: ServerClient(server: origin.url(""), token: "t"), threads: threads)
        let found = Found()
        do throws(PrewarmRunError) {
            try await backend.run(entries ?? self.entries) { found.add($0, $1) }
            return (found.all, nil)
        } catch {
            return (found.all, error.description)
        }
    }

    @Test func outcomesArePolledFromTheLastKnownOneOn() async throws {
        let origin = try LoopbackOrigin([
            "/prewarm": { _ in .response("202 Accepted", body: Array(#"{"id":"1"}"#.utf8)) },
            "/prewarm/1": { request in
                switch request.query {
                case "from=0": Self.report([0, 2].map(Self.outcome).joined(separator: ","))
                // A number outside the list is ignored.
                default: Self.report("\(Self.outcome(1)),\(Self.outcome(77))", state: "done")
                }
            },
        ])
        defer { origin.stop() }
        let (outcomes, error) = await run(on: origin)
        #expect(error == nil && outcomes.mapValues(\.bytes) == [0: 0, 1: 1, 2: 2])
        #expect(
            origin.requests.map(\.target) == ["/prewarm?retries=1&concurrency=2", "/prewarm/1?from=0", "/prewarm/1?from=2"])
    }

    @Test func entriesThatTakeLongDoNotDelayTheNextJob() async throws {
        let isSecondKnown = Mutex(false)
        let origin = try LoopbackOrigin([
            "/prewarm": { .response("202 Accepted", body: Array(#"{"id":"\#($0.number)"}"#.utf8)) },
            "/prewarm/1": { request in
                let first = Int(request.query.dropFirst("from=".count)) ?? 0
                // The last entry ends after those of the other job.
                let end = isSecondKnown.withLock { $0 } ? 2000 : 1999
                let numbers = first..<max(first, min(first + PrewarmReport.resultLimit, end))
                return Self.report(numbers.map(Self.outcome).joined(separator: ","))
            },
            "/prewarm/2": { _ in
                isSecondKnown.withLock { $0 = true }
                return Self.report([0, 1].map(Self.outcome).joined(separator: ","), state: "done")
            },
        ])
        defer { origin.stop() }
        let (outcomes, error) = await run((0..<2002).map { PrewarmEntry(url: "https://a.test/\($0).gif") }, on: origin)
        #expect(error == nil && outcomes.count == 2002 && outcomes[1999]?.bytes == 1999 && outcomes[2001]?.bytes == 1)
        #expect(origin.count("/prewarm") == 2)
    }

    @Test func cancellingTheRunCancelsAllJobsThatHaveNotEnded() async throws {
        let origin = try LoopbackOrigin([
            "/prewarm": { .ok(Array(#"{"id":"\#($0.number)"}"#.utf8)) },
            "/prewarm/1": { request in
                if request.method == "DELETE" { return .status(204) }
                let first = Int(request.query.dropFirst("from=".count)) ?? 0
                let numbers = first..<max(first, min(first + PrewarmReport.resultLimit, 1999))
                return Self.report(numbers.map(Self.outcome).joined(separator: ","))
            },
            "/prewarm/2": { $0.method == "DELETE" ? .status(204) : Self.report("") },
        ])
        defer { origin.stop() }
        let task = Task { await run((0..<2001).map { PrewarmEntry(url: "https://a.test/\($0).gif") }, on: origin) }
        try await waitUntil("the first poll of the second job") { origin.count("/prewarm/2") > 0 }
        task.cancel()
        let (outcomes, error) = await task.value
        #expect(outcomes.count == 1999 && error == nil)
        #expect(origin.requests.filter { $0.method == "DELETE" }.map(\.path).sorted() == ["/prewarm/1", "/prewarm/2"])
    }

    @Test func aBusyServerIsAskedAgain() async throws {
        let origin = try LoopbackOrigin([
            "/prewarm": { $0.number < 3 ? .status($0.number == 1 ? 503 : 429) : .ok(Array(#"{"id":"1"}"#.utf8)) },
            "/prewarm/1": { _ in Self.report((0..<3).map(Self.outcome).joined(separator: ","), state: "done") },
        ])
        defer { origin.stop() }
        let (outcomes, error) = await run(on: origin)
        #expect(error == nil && outcomes.count == 3 && origin.count("/prewarm") == 3)
    }

    @Test(arguments: [
        (401, "does not accept the token. Give its admin.token by --token or GIFREEL_ADMIN_TOKEN."),
        (404, "has no admin.token in its settings, or is not a Gifreel server."), (400, "answered with status 400."),
        (200, "does not answer like a Gifreel server."),
    ])
    func anAnswerThatWillNotChangeEndsTheRun(_ status: Int, _ sentence: String) async throws {
        let origin = try LoopbackOrigin(["/prewarm": { _ in .status(status) }])
        defer { origin.stop() }
        let (outcomes, error) = await run(on: origin)
        #expect(outcomes.isEmpty && error == "\(origin.url("")) \(sentence)" && origin.count("/prewarm") == 1)
    }

    @Test func aRedirectIsNamed() async throws {
        let origin = try LoopbackOrigin(["/prewarm": { _ in .redirect(to: "https://gifs.example.com/prewarm", 301) }])
        defer { origin.stop() }
        let (_, error) = await run(on: origin)
        #expect(
            error == "\(origin.url("")) answered with status 301, a redirect to https://gifs.example.com/prewarm.")
    }

    @Test func aJobThatIsCancelledOnTheServerEndsTheRun() async throws {
        let origin = try LoopbackOrigin([
            "/prewarm": { _ in .ok(Array(#"{"id":"1"}"#.utf8)) },
            "/prewarm/1": { $0.number == 1 ? Self.report(Self.outcome(0)) : Self.report("", state: "cancelled") },
        ])
        defer { origin.stop() }
        let (outcomes, error) = await run(on: origin)
        #expect(outcomes.count == 1 && error == "The job 1 was cancelled on the server.")
    }

    @Test func aServerThatForgotOutcomesEndsTheRun() async throws {
        let origin = try LoopbackOrigin([
            "/prewarm": { _ in .ok(Array(#"{"id":"1"}"#.utf8)) },
            "/prewarm/1": { $0.number == 1 ? Self.report(Self.outcome(0)) : Self.report("", state: "done") },
        ])
        defer { origin.stop() }
        let (outcomes, error) = await run(on: origin)
        #expect(outcomes.count == 1)
        #expect(error == "The job 1 has ended, and the server no longer has the outcomes of 2 entries.")
    }

    @Test func aServerThatForgotTheJobEndsTheRun() async throws {
        let origin = try LoopbackOrigin(["/prewarm": { _ in .ok(Array(#"{"id":"1"}"#.utf8)) }])
        defer { origin.stop() }
        #expect(await run(on: origin).error == "\(origin.url("")) no longer knows the job.")
    }

    @Test func cancellingTheRunCancelsTheJobOnTheServer() async throws {
        let origin = try LoopbackOrigin([
            "/prewarm": { _ in .ok(Array(#"{"id":"1"}"#.utf8)) },
            "/prewarm/1": { $0.method == "DELETE" ? .status(204) : Self.report("") },
        ])
        defer { origin.stop() }
        let task = Task { await run(on: origin) }
        try await waitUntil("the first poll") { origin.count("/prewarm/1") > 0 }
        task.cancel()
        let (outcomes, error) = await task.value
        #expect(outcomes.isEmpty && error == nil)
        #expect(origin.requests.last?.method == "DELETE" && origin.requests.last?.path == "/prewarm/1")
    }
}

/// The outcomes that a backend reports, from any thread.
private final class Found: Sendable {
    private let outcomes = Mutex<[Int: PrewarmOutcome]>([:])

    func add(_ number: Int, _ outcome: PrewarmOutcome) { outcomes.withLock { $0[number] = outcome } }

    var all: [Int: PrewarmOutcome] { outcomes.withLock { $0 } }
}
