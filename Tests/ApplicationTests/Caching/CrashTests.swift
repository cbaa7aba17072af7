import Foundation
import Synchronization
import TestSupport
import Testing

/// Simulations order the events of a crash in all ways; here the kernel and the disk are real.
@Suite("A server that is killed sends nothing wrong after its start", .timeLimit(.minutes(60))) struct CrashTests {
    /// The number of kills; `CRASH_CYCLES=1000` sets another.
    private static let cycles = ProcessInfo.processInfo.environment["CRASH_CYCLES"].flatMap { Int($0) } ?? 6
    private static let admin = ["Authorization: Bearer secret"]

    /// Sources with versions. Poster and GIF are as wide as the source's number says and as high as the version says.
    private final class Sources: Sendable {
        private struct State {
            var versions: [Int]
            /// The oldest version that may be sent, because the older ones were purged.
            var floors: [Int]
            var answers = 0
            var faults: [String] = []
        }

        /// The smallest side of a GIF.
        private static let base = 8
        private let state: Mutex<State>
        let origin: LoopbackOrigin

        init(count: Int) throws {
            state = Mutex(State(versions: Array(repeating: 1, count: count), floors: Array(repeating: 1, count: count)))
            origin = try LoopbackOrigin()
            for source in 0..<count {
                origin.on("/\(source).gif") { [weak self] _ in
                    let version = self?.state.withLock { $0.versions[source] } ?? 0
                    return .ok(
                        GIFBuilder.animation(frames: 1, width: Self.base + source, height: Self.base + version))
                }
            }
        }

        var count: Int { state.withLock { $0.versions.count } }
        var answers: Int { state.withLock { $0.answers } }
        var faults: [String] { state.withLock { $0.faults } }

        private func target(_ source: Int) -> String { "/png/\(origin.url("/\(source).gif"))" }

        /// Requests a poster, and checks it.
        @discardableResult func ask(_ server: GifreelProcess, _ source: Int) throws -> RawHTTPResponse {
            let floor = state.withLock { $0.floors[source] }
            let answer = try server.request("GET", target(source))
            state.withLock { state in
                state.answers += 1
                let (width, height) = Self.size(answer.body)
                let versions = (floor...state.versions[source]).map { $0 + Self.base }
                if answer.status != 200 || width != source + Self.base || !versions.contains(height) {
                    state.faults.append("\(answer.status) for \(source): \(width) × \(height), not a height of \(versions)")
                }
            }
            return answer
        }

        /// Replaces the source at its origin, and purges the old version.
        func replace(_ source: Int, _ server: GifreelProcess) throws {
            let version = state.withLock { state in
                state.versions[source] += 1
                return state.versions[source]
            }
            let answer = try server.request("PURGE", target(source), headers: CrashTests.admin)
            if answer.status == 200 { state.withLock { $0.floors[source] = max($0.floors[source], version) } }
        }

        /// Width and height in the head of a whole PNG; zeros for other bytes.
        private static func size(_ png: [UInt8]) -> (Int, Int) {
            guard png.count > 45, png.suffix(8).starts(with: Array("IEND".utf8)) else { return (0, 0) }
            func number(_ start: Int) -> Int { png[start..<start + 4].reduce(0) { $0 << 8 | Int($1) } }
            return (number(16), number(20))
        }
    }

    @Test func renditionsAndPurgesSurviveKills() throws {
        let folder = try ScratchDirectory()
        let directory = URL(fileURLWithPath: folder.path("server"))
        let sources = try Sources(count: 12)
        defer { sources.origin.stop() }
        var hits = 0
        // They remove their directory when they are released.
        var servers: [GifreelProcess] = []
        var slowest = Duration.zero
        for cycle in 0..<Self.cycles {
            let began = ContinuousClock.now
            let server = try GifreelProcess(["admin.token=secret", "cache.max_bytes=4MiB"], directory: directory)
            slowest = max(slowest, ContinuousClock.now - began)
            servers.append(server)
            for source in 0..<sources.count where try sources.ask(server, source)["cache-status"] == "gifreel; hit" {
                hits += 1
            }
            let group = DispatchGroup()
            for client in 0..<3 {
                group.enter()
                // Requests fail once the server is killed.
                Thread.detachNewThread {
                    defer { group.leave() }
                    for step in 0... {
                        let source = (step * 7 + client * 5 + cycle) % sources.count
                        do {
                            if step % 5 == 4 {
                                try sources.replace(source, server)
                            } else {
                                try sources.ask(server, source)
                            }
                        } catch { return }
                    }
                }
            }
            let enough = sources.answers + 20 + cycle % 6 * 7
            try blockUntil("\(enough) answers") { sources.answers >= enough }
            server.kill()
            group.wait()
        }
        withExtendedLifetime(servers) {}
        #expect(sources.faults == [] && hits > 0, "\(hits) hits after starts")
        print("\(Self.cycles) kills: \(sources.answers) answers, \(hits) hits after starts, slowest start \(slowest)")
    }
}
