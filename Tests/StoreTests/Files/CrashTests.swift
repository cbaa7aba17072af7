import CSystemCalls
import Foundation
import Glibc
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Store

/// A process publishes and purges until it is killed, several times. After each time the directory is opened and checked.
///
/// The process is this test program, which an environment variable tells to run ``loadThatIsKilled()`` only.
@Suite("A process that is killed leaves a directory that opens without errors", .serialized) struct CrashTests {
    /// The number of kills; `CRASH_CYCLES=200` sets another.
    private static let count = ProcessInfo.processInfo.environment["CRASH_CYCLES"].flatMap { Int($0) } ?? 4
    private static let directory = ProcessInfo.processInfo.environment["CRASH_DIRECTORY"]
    private static let failingSyncs = "CRASH_FAILING_SYNCS"

    @Test(.enabled(if: directory == nil), arguments: [false, true])
    func noStoredRenditionIsWrongAfterAKill(syncsFail: Bool) async throws {
        let temporary = try TemporaryDirectory()
        var generator = SeededNumbers(seed: 1)
        var found = 0
        var slowest = Duration.zero
        for _ in 0..<Self.count {
            let child = try start(in: temporary.path, syncsFail: syncsFail)
            var status: Int32 = 0
            var isRunning = true
            defer {
                if isRunning {
                    kill(child, SIGKILL)
                    waitpid(child, &status, 0)
                }
            }
            // At a random moment after the first changes.
            let logged = lines(temporary).count
            try await waitUntil("the first changes") { lines(temporary).count > logged + 3 }
            usleep(UInt32.random(in: 0...60_000, using: &generator))
            kill(child, SIGKILL)
            waitpid(child, &status, 0)
            isRunning = false
            try #require(status & 0x7f == SIGKILL, "the process ended by itself")
            let start = ContinuousClock.now
            let cache = try Cache(configuration: .crashing(temporary.path))
            slowest = max(slowest, ContinuousClock.now - start)
            let floors = CrashLog(lines(temporary)).floors
            for source in 0..<CrashingLoad.sources {
                guard let rendition = await cache.alias(.test(CrashingLoad.url(source))) else { continue }
                let bytes = try rendition.descriptor.readAll()
                let version = try #require(bytes.first)
                #expect(bytes == CrashingLoad.bytes(source, version), "a wrong or truncated object")
                #expect(version >= floors[source], "older than a purge that had returned")
                found += 1
            }
            try await waitUntil("the comparison of files and rows") { cache.context.changes.withLock { $0.scanNumber } == nil }
            // Closed first, because eviction may be running.
            cache.close()
            let statistics = cache.statistics()
            #expect(statistics.corrupt == 0)
            #expect(temporary.files("cache/objects").filter { $0.hasSuffix(".mp4") }.count == Int(statistics.objects))
        }
        #expect(found > Self.count)
        #expect(slowest < .seconds(10))
        print("\(Self.count) kills, syncs fail: \(syncsFail): \(found) renditions compared, slowest start \(slowest)")
    }

    /// Publishes and purges until it is killed.
    @Test(.enabled(if: directory != nil)) func loadThatIsKilled() async throws {
        let path = try #require(Self.directory)
        if ProcessInfo.processInfo.environment[Self.failingSyncs] != nil {
            csystemcalls_begin(
                path,
                { event in
                    let isSync = event.map { $0.pointee.call == Int32(csystemcalls_sync.rawValue) } ?? false
                    return isSync && Int.random(in: 0..<10) == 0 ? EIO : 0
                }, { _ in })
        }
        try await CrashingLoad(path).run()
    }

    private func lines(_ temporary: TemporaryDirectory) -> [Substring] {
        let text = (try? temporary.contents("log")) ?? []
        return String(decoding: text, as: UTF8.self).split(separator: "\n")
    }

    private func start(in directory: String, syncsFail: Bool) throws -> pid_t {
        let words = ["crash", "--testing-library", "swift-testing", "--filter", "loadThatIsKilled"]
        var names = ProcessInfo.processInfo.environment.merging(["CRASH_DIRECTORY": directory]) { $1 }
        if syncsFail { names[Self.failingSyncs] = "1" }
        let arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        let environment: [UnsafeMutablePointer<CChar>?] = names.map { strdup("\($0)=\($1)") } + [nil]
        defer { (arguments + environment).forEach { free($0) } }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        defer { posix_spawn_file_actions_destroy(&actions) }
        var child: pid_t = 0
        let code = posix_spawn(&child, "/proc/self/exe", &actions, nil, arguments, environment)
        try #require(code == 0)
        return child
    }
}

extension CacheConfiguration {
    static func crashing(_ path: String) -> CacheConfiguration {
        var configuration = CacheConfiguration()
        configuration.directory = path + "/cache"
        configuration.minFreeBytes = 0
        // Small enough that objects are evicted, too.
        configuration.maxBytes = 2 << 20
        return configuration
    }
}

/// The log of the killed process: a line `source version` after each publish and each purge that has succeeded.
private struct CrashLog {
    var floors = [UInt8](repeating: 0, count: CrashingLoad.sources)

    init(_ lines: [Substring]) {
        for line in lines {
            let parts = line.split(separator: " ").compactMap { Int($0) }
            guard parts.count == 2, floors.indices.contains(parts[0]) else { continue }
            floors[parts[0]] = UInt8(parts[1])
        }
    }
}

private final class CrashingLoad: Sendable {
    static let sources = 30
    private let path: String
    private let log: Int32
    private let versions: Mutex<[UInt8]>

    init(_ path: String) throws {
        self.path = path
        log = Glibc.open(path + "/log", O_RDWR | O_CREAT | O_APPEND, 0o600)
        let text = (try? String(contentsOfFile: path + "/log", encoding: .utf8)) ?? ""
        versions = Mutex(CrashLog(text.split(separator: "\n")).floors)
    }

    static func url(_ source: Int) -> String { "https://crash.test/\(source)" }

    static func bytes(_ source: Int, _ version: UInt8) -> [UInt8] {
        [version] + noise(20_000 + source * 5_000, seed: UInt64(source) << 8 | UInt64(version))
    }

    func run() async throws {
        let cache = try open()
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<3 {
                group.addTask { await self.work(cache, SeededNumbers(seed: UInt64(getpid()) << 2 | UInt64(worker)), worker) }
            }
        }
    }

    /// Opens the cache. Where syncs fail, several attempts may be needed.
    private func open() throws -> Cache {
        for _ in 0..<100 {
            if let cache = try? Cache(configuration: .crashing(path)) { return cache }
        }
        return try Cache(configuration: .crashing(path))
    }

    /// Each worker has its own sources, so that their versions only increase.
    private func work(_ cache: Cache, _ seed: SeededNumbers, _ worker: Int) async {
        var generator = seed
        while true {
            let source = Int.random(in: 0..<Self.sources / 3, using: &generator) * 3 + worker
            let url = Self.url(source)
            let version = versions.withLock { $0[source] }
            if Int.random(in: 0..<4, using: &generator) > 0 || version > 250 {
                let epoch = cache.epoch
                guard let staged = try? cache.staged(Self.bytes(source, version)) else { continue }
                let outcome = try? await cache.publish(
                    staged, as: .test("\(url) \(version)"), fileExtension: "mp4", alias: .test(url), epoch: epoch)
                switch outcome {
                case .stored, .existing: break
                case .unstored, nil: continue
                }
            } else {
                versions.withLock { $0[source] += 1 }
                guard (try? await cache.purge(.url(url))) != nil else { continue }
            }
            let line = Array("\(source) \(versions.withLock { $0[source] })\n".utf8)
            _ = write(log, line, line.count)
        }
    }
}
