import Synchronization
import TestSupport
import Testing

@testable import Cluster

@Suite("The purge stream is followed over one connection", .enabled(if: RedisServer.isAvailable))
struct PurgeFollowerTests {
    @Test func aNewConnectionEndsTheRunSoThatTheNodeCatchesUp() async throws {
        let (server, folder) = (try await RedisServer(), try ScratchDirectory())
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let follower = Mutex<PurgeFollower?>(nil)
        let commands = ReplacedConnection(base: link) { follower.withLock { $0?.connected() } }
        let made = PurgeFollower.test(commands, PurgeFile(path: folder.path("purges")))
        follower.withLock { $0 = made }
        // Without an error: the connection was replaced between two reads, and no command has failed.
        try await made.follow()
        #expect(!made.isTakingPart && commands.reads == 1)
    }
}

/// A link whose connection is replaced during the first read of new entries. A second read fails.
private final class ReplacedConnection: RedisCommands {
    private let base: any RedisCommands
    private let onReplacement: @Sendable () -> Void
    private let count = Mutex(0)

    init(base: any RedisCommands, onReplacement: @escaping @Sendable () -> Void) {
        self.base = base
        self.onReplacement = onReplacement
    }

    /// The number of reads so far.
    var reads: Int { count.withLock { $0 } }

    func replies(to commands: [RedisCommand], within limit: Duration) async throws(RedisError) -> [RedisValue] {
        guard commands.first?.arguments[0] == Array("XREAD".utf8) else {
            return try await base.replies(to: commands, within: limit)
        }
        let number = count.withLock { count in
            count += 1
            return count
        }
        guard number == 1 else { throw .unavailable("a second read") }
        onReplacement()
        return [.none]
    }
}
