import Foundation
import Synchronization
import TestSupport
import Testing

/// The number of files in a row: `GIFREEL_TEST_HOSTILE_ROUNDS`.
private let rounds = ProcessInfo.processInfo.environment["GIFREEL_TEST_HOSTILE_ROUNDS"].flatMap { Int($0) } ?? 100

@Suite("Hostile files fail alone", .serialized, .timeLimit(.minutes(10 + rounds / 100))) struct HostileFileTests {
    private static let files = Result { try HostileFile.all() }
    private static let settings = ["limits.memory=512MiB", "transcode.workers=2"]
    /// Far above what a debug build takes, which shares the processors with other tests.
    private static let longestAnswer: Duration = .seconds(30)
    private static let mostGrowth = 20 << 20

    @Test func everyHostileFileIsAnsweredInTimeByAWorkerThatSurvivesIt() throws {
        let files = try Self.files.get()
        #expect(Set(files.map(\.name)).count == files.count && files.count >= 168, "files are missing")
        let server = try GifreelProcess(Self.settings)
        _ = try upload(HostileGIFs.plain, to: server)
        let before = try server.memory("VmRSS")
        var faults = try faultCounts(of: server)
        for file in files {
            let answer = try upload(file.bytes, to: server)
            #expect(file.expectation.permits(answer.status), "\(file.name): \(answer.status), not \(file.expectation)")
            #expect(answer.time < Self.longestAnswer, "\(file.name)")
            let now = try faultCounts(of: server)
            #expect(now == faults, "\(file.name): the worker crashed or did not reply")
            faults = now
        }
        let growth = try server.memory("VmHWM") - before
        #expect(growth <= Self.mostGrowth, "the server grew by \(growth) bytes")
        #expect(server.terminate() == 0)
    }

    @Test func aRowOfHostileFilesLeavesNothingBehind() throws {
        let files = try Self.files.get().filter { $0.bytes.count < 200_000 }
        let server = try GifreelProcess(Self.settings)
        let faults = try faultCounts(of: server)
        let first = min(500, rounds / 4)
        try sendRow(of: first, from: files, to: server, seed: 1)
        let before = try settledState(of: server)
        try sendRow(of: rounds - first, from: files, to: server, seed: 2)
        var after = before
        try blockUntil("nothing left behind: \(before) → \(after)") {
            after = try HostileAftermath(server)
            return after.workers == 0 && after.zygotes == before.zygotes
                && after.descriptors <= before.descriptors + 4 && after.zygoteDescriptors <= before.zygoteDescriptors
                && after.memory <= before.memory + Self.mostGrowth && after.zygoteMemory <= before.zygoteMemory + 1 << 20
        }
        #expect(try faultCounts(of: server) == faults, "workers crashed or did not reply")
        #expect(server.terminate() == 0)
    }

    /// Sends random files, two at a time.
    private func sendRow(of count: Int, from files: [HostileFile], to server: GifreelProcess, seed: UInt64) throws {
        let state = Mutex((left: count, numbers: SeededNumbers(seed: seed)))
        let surprises = try atOnce(2, within: .seconds(300 + 10 * count)) { _ in
            var surprises: [String] = []
            while true {
                let next: (file: HostileFile, bytes: [UInt8])? = state.withLock { state in
                    guard state.left > 0, let file = files.randomElement(using: &state.numbers) else { return nil }
                    state.left -= 1
                    // Decoders of GIFs ignore what follows the end, but no answer comes from the cache.
                    let suffix = file.bytes.last == 0x3b ? String(state.numbers.next(), radix: 16) : ""
                    return (file, file.bytes + Array(suffix.utf8))
                }
                guard let next else { return surprises }
                let answer = try upload(next.bytes, to: server)
                if !next.file.expectation.permits(answer.status) || answer.time >= Self.longestAnswer {
                    surprises.append("\(next.file.name): \(answer.status) after \(answer.time)")
                }
            }
        }
        #expect(surprises == [[], []])
    }

    private func upload(_ bytes: [UInt8], to server: GifreelProcess) throws -> (status: Int, time: Duration) {
        let start = ContinuousClock.now
        let answer = try server.request("POST", "/mp4", headers: ["Content-Type: image/gif"], body: bytes)
        return (answer.status, ContinuousClock.now - start)
    }

    /// How many workers ended for each of the causes that no file may bring about.
    private func faultCounts(of server: GifreelProcess) throws -> [String: Int] {
        let lines = try server.request("GET", "/metrics").text.split(separator: "\n")
        let causes = ["crash", "system_call", "exit", "misbehaved"]
        return Dictionary(
            uniqueKeysWithValues: try causes.map { cause in
                let name = "gifreel_sandbox_kills_total{cause=\"\(cause)\"} "
                let line = try #require(lines.first { $0.hasPrefix(name) }, "\(name)is no metric")
                return (cause, try #require(Int(line.dropFirst(name.count))))
            })
    }

    /// The state once no worker runs and no connection is about to be closed.
    private func settledState(of server: GifreelProcess) throws -> HostileAftermath {
        var (state, sameInARow) = (try HostileAftermath(server), 0)
        try blockUntil("no job and the same descriptors for a while") {
            let now = try HostileAftermath(server)
            let isSame = now.descriptors == state.descriptors && now.zygoteDescriptors == state.zygoteDescriptors
            sameInARow = now.workers == 0 && isSame ? sameInARow + 1 : 0
            state = now
            return sameInARow >= 50
        }
        return state
    }
}

/// What hostile files could leave behind.
private struct HostileAftermath {
    let zygotes: [Int32]
    let workers: Int
    let descriptors: Int
    let zygoteDescriptors: Int
    /// Resident bytes.
    let memory: Int
    let zygoteMemory: Int

    init(_ server: GifreelProcess) throws {
        zygotes = server.zygotes
        workers = server.workerCount
        let zygote = try #require(zygotes.count == 1 ? zygotes.first : nil, "\(zygotes.count) zygotes")
        descriptors = try Self.descriptors(of: server.identifier)
        zygoteDescriptors = try Self.descriptors(of: zygote)
        memory = try server.memory("VmRSS")
        zygoteMemory = try GifreelProcess.memory("VmRSS", of: zygote)
    }

    /// Open descriptors without those of stored renditions, which the cache holds open for later hits in bounded tables.
    private static func descriptors(of process: Int32) throws -> Int {
        let folder = "/proc/\(process)/fd"
        return try FileManager.default.contentsOfDirectory(atPath: folder).count { number in
            guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(number)") else {
                // It was closed meanwhile.
                return false
            }
            guard target.contains("/objects/") || target.contains("/staging/#") else { return true }
            var status = stat()
            // A published file has a link, even if it was opened without a name.
            return stat("\(folder)/\(number)", &status) == 0 && status.st_nlink == 0
        }
    }
}
