import Fetch
import Foundation
import Glibc
import HTTP
import Logging
import Sandbox
import Settings
import Store
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import gifreel

@Suite("Start, readiness, drain and restart", .timeLimit(.minutes(10))) struct LifecycleTests {
    @Test func healthAndReadinessAnswer200() throws {
        let server = try GifreelProcess()
        for path in ["/healthz", "/readyz"] {
            let answer = try server.request("GET", path)
            #expect(answer.status == 200 && answer.text == "ok\n")
        }
    }

    @Test func theDescriptorLimitIsRaisedToItsMaximum() throws {
        let server = try GifreelProcess()
        let limits = try String(contentsOfFile: "/proc/\(server.identifier)/limits", encoding: .utf8)
        let words = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max open files") })
            .split(separator: " ")
        #expect(words[3] == words[4])
    }

    @Test func terminationLetsRequestsInProgressEnd() throws {
        let gate = try LoopbackGate()
        let gif = GIFBuilder.animation()
        let origin = try LoopbackOrigin(["/a.gif": { _ in LoopbackAnswer.ok(gif).after(gate) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        var client = try RawHTTPClient(port: server.port)
        try client.send(Array("GET /mp4/\(origin.url("/a.gif")) HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
        try origin.waitForRequests(for: "/a.gif")
        kill(server.identifier, SIGTERM)
        try server.waitForLog("draining")
        gate.open()
        let answer = try client.readResponse()
        #expect(answer.status == 200 && answer["connection"] == "close")
        #expect(server.waitForExit() == 0)
    }

    private func settings(of directory: ScratchDirectory) -> Settings {
        var settings = Settings()
        settings.http.port = 0
        settings.cache.directory = directory.path
        settings.cache.minFreeBytes = 0
        return settings
    }

    @Test func aDiskThatStallsDoesNotPreventTheEnd() async throws {
        let directory = try ScratchDirectory()
        var settings = settings(of: directory)
        // Without a shared store, no write is queued for it.
        settings.store.s3.drainTimeout = .seconds(60)
        let configuration = try ServiceConfiguration(settings)
        let zygote = try Zygote.spawn(executable: GifreelProcess.executable.path)
        defer { zygote.stop() }
        let service = try GifreelService(configuration: configuration, zygote: zygote, logger: Logger(label: "test"))
        try service.start()
        let stall = Stall()
        try await stall.begin { [ledger = service.core.cache.ledger] wait in _ = try? ledger.write(.normal) { _ in wait() } }
        defer { stall.end() }
        let begin = ContinuousClock.now
        await service.stop()
        #expect(ContinuousClock.now - begin < .seconds(40))
        #expect(throws: CacheError.self) { try Cache(configuration: configuration.cache).close() }
        stall.end()
        try await waitUntil("the cache to be closed") {
            (try? Cache(configuration: configuration.cache).close()) != nil
        }
    }

    @Test func aDiskThatStallsDoesNotPreventAReload() async throws {
        let directory = try ScratchDirectory()
        var settings = settings(of: directory)
        settings.fetch.allowPrivate = [try #require(AddressException("127.0.0.1"))]
        let zygote = try Zygote.spawn(executable: GifreelProcess.executable.path)
        defer { zygote.stop() }
        let service = try GifreelService(
            configuration: ServiceConfiguration(settings), zygote: zygote, logger: Logger(label: "test"))
        try service.start()
        let stall = Stall()
        try await stall.begin { [ledger = service.core.cache.ledger] wait in _ = try? ledger.write(.normal) { _ in wait() } }
        defer { stall.end() }
        // What is stored may come from an address that is no longer allowed.
        settings.fetch.allowPrivate = []
        let (configuration, thread) = (try ServiceConfiguration(settings), WorkThreads(count: 1, limit: 1, name: "reload"))
        let isOver = Mutex(false)
        _ = thread.submit {
            try? service.reload(configuration, logger: Logger(label: "test"))
            isOver.withLock { $0 = true }
        }
        try await waitUntil("the end of the reload") { isOver.withLock { $0 } }
        stall.end()
        thread.close()
        await service.stop()
    }

    /// Requests of clients that do not stop: the server closes each connection after a response that says so.
    @Test func terminationUnderLoadLosesNoRequest() throws {
        let server = try GifreelProcess()
        let upload = try server.request("POST", "/mp4", body: GIFBuilder.noise(frames: 4, width: 64, height: 64))
        let path = try #require(upload["content-location"])
        let load = Load()
        let group = DispatchGroup()
        for _ in 0..<16 {
            group.enter()
            Thread.detachNewThread { [port = server.port] in
                load.run(port: port, path: path, body: upload.body)
                group.leave()
            }
        }
        try blockUntil("500 responses") { load.answered > 500 }
        #expect(server.terminate() == 0)
        group.wait()
        #expect(load.lost == [])
    }

    /// Clients that request one path without pause on connections that they keep, until the server does not listen any more.
    private final class Load: Sendable {
        private let state = Mutex((answered: 0, lost: [String]()))

        var answered: Int { state.withLock { $0.answered } }
        /// Requests without the whole response.
        var lost: [String] { state.withLock { $0.lost } }

        func run(port: Int, path: String, body: [UInt8]) {
            while var client = try? RawHTTPClient(port: port) {
                do {
                    var answer: RawHTTPResponse
                    repeat {
                        answer = try client.request("GET", path)
                        let isWhole = answer.status == 200 && answer.body == body
                        state.withLock { state in
                            state.answered += 1
                            if !isWhole { state.lost.append("\(answer.status), \(answer.body.count) bytes") }
                        }
                    } while answer["connection"] != "close"
                } catch {
                    state.withLock { $0.lost.append("\(error)") }
                }
            }
        }
    }

    /// systemd passes a listening socket as descriptor 3.
    @Test func aSocketThatAnotherProcessHoldsIsServedAndOutlivesTheServer() throws {
        let folder = try ScratchDirectory()
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(number) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, length) == 0 && getsockname(number, $0, &length) == 0
            }
        }
        try #require(number >= 0 && isBound && listen(number, 16) == 0)
        let port = Int(UInt16(bigEndian: address.sin_port))
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = [
            "-c", #"exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@""#, "sh", GifreelProcess.executable.path,
            "serve",
            "--set", "cache.dir=\(folder.path("cache"))", "--set", "cache.min_free_bytes=0", "--set", "server.port=1",
        ]
        process.standardInput = FileHandle(fileDescriptor: number, closeOnDealloc: false)
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.start()
        defer { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }
        // The backlog holds the request until the server accepts it.
        var client = try RawHTTPClient(port: port)
        #expect(try client.request("GET", "/healthz").status == 200)
        process.terminate()
        #expect(process.waitForEnd(within: .seconds(60)) == 0)
        // Clients wait in the backlog for the next process.
        _ = try RawHTTPClient(port: port)
    }

    @Test func duringTheShutdownDelayTheServerIsNotReadyAndStillAnswers() throws {
        let server = try GifreelProcess(["server.shutdown_delay=2s"])
        let start = ContinuousClock.now
        kill(server.identifier, SIGTERM)
        try blockUntil("the server not to be ready") { try server.request("GET", "/readyz").status == 503 }
        #expect(try server.request("GET", "/healthz").status == 200)
        #expect(try server.request("POST", "/mp4", body: GIFBuilder.animation()).status == 200)
        #expect(server.waitForExit() == 0)
        #expect(ContinuousClock.now - start >= .seconds(2))
    }

    @Test func aSecondServerOnTheSameCacheIsRefused() throws {
        let server = try GifreelProcess()
        let error = #expect(throws: GifreelProcess.NotStarted.self) {
            try GifreelProcess(["cache.dir=\(server.directory.path)/cache"])
        }
        let sentence = "is in use by another server (process \(server.identifier))"
        #expect(error?.log.contains(sentence) == true, "\(error?.log ?? "")")
        #expect(try server.request("GET", "/healthz").status == 200)
    }

    @Test func aWrongSettingStopsTheStartWithItsName() throws {
        for setting in ["server.port=many", "limits.side=0", "no.such=1", "sources.allow_private=nonsense/99"] {
            do {
                _ = try GifreelProcess([setting])
                Issue.record("started with \(setting)")
            } catch let error as GifreelProcess.NotStarted {
                #expect(error.log.contains(setting.split(separator: "=")[0]), "\(error.log)")
            }
        }
    }

    @Test func aPurgeRemovesASource() throws {
        let gif = GIFBuilder.animation()
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["admin.token=secret"])
        let target = "/mp4/\(origin.url("/a.gif"))"
        _ = try server.request("GET", target)
        #expect(try server.request("PURGE", target).status == 401)
        #expect(try server.request("PURGE", target, headers: ["Authorization: Bearer wrong"]).status == 401)
        let purged = try server.request("PURGE", target, headers: ["Authorization: Bearer secret"])
        #expect(purged.status == 200 && purged.text.contains("\"purged\":1"))
        #expect(try server.request("GET", target)["cache-status"] == "gifreel; fwd=miss; stored")
        let all = try server.request("DELETE", "/cache?all=true", headers: ["Authorization: Bearer secret"])
        #expect(all.text.contains("\"purged\":1"))
        let facts = try server.request("GET", "/cache", headers: ["Authorization: Bearer secret"])
        #expect(facts.text.contains("\"objects\":0"))
    }

    @Test func aPurgeOfAnObjectRemovesItAndTheAliasesThatLeadToIt() throws {
        let gif = GIFBuilder.animation()
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["admin.token=secret"])
        let upload = try server.request("POST", "/mp4", body: gif)
        let object = try #require(upload["content-location"])
        let target = "/mp4/\(origin.url("/a.gif"))"
        #expect(try server.request("GET", target).status == 200)
        // A purge of the URL leaves the upload of the same bytes.
        #expect(try server.request("PURGE", target, headers: ["Authorization: Bearer secret"]).status == 200)
        #expect(try server.request("GET", object).status == 200)
        #expect(try server.request("GET", target).status == 200)
        #expect(try server.request("PURGE", object).status == 401)
        #expect(try server.request("PURGE", object, headers: ["Authorization: Bearer secret"]).status == 200)
        #expect(try server.request("GET", object).status == 404)
        #expect(try server.request("GET", target)["cache-status"] == "gifreel; fwd=miss; stored")
    }

    @Test func staleAnswersGoOutWhileTheOriginIsAskedAgain() throws {
        let gif = GIFBuilder.animation()
        let origin = try LoopbackOrigin(["/a.gif": { request in .tagged("\"1\"", gif, request) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["cache.fresh_for=0s"])
        let first = try server.mp4(origin.url("/a.gif"))
        let stale = try server.mp4(origin.url("/a.gif"))
        #expect(stale.status == 200 && stale.body == first.body)
        #expect(stale["cache-status"]?.hasPrefix("gifreel; hit; ttl=-") == true)
        try origin.waitForRequests(2, for: "/a.gif")
        #expect(origin.requests.last?.headers["if-none-match"] == "\"1\"")
    }
}
