import Foundation
import TestSupport
import Testing

@Suite("Full, removed and read-only cache directories", .serialized, .timeLimit(.minutes(10))) struct DiskTests {
    private func origin() throws -> LoopbackOrigin {
        let origin = try LoopbackOrigin()
        for number in 0..<20 {
            let gif = GIFBuilder.animation(frames: 4, width: 64, height: 64, delay: 3 + number)
            origin.on("/\(number).gif", .ok(gif))
        }
        return origin
    }

    private func folder() throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder.appendingPathComponent("cache"), withIntermediateDirectories: true)
        return folder
    }

    @Test(.enabled(if: SmallDisk.isPossible, "needs the right to mount"))
    func aFullDiskFailsNoRequest() throws {
        let (origin, folder) = (try origin(), try folder())
        defer { origin.stop() }
        let disk = try #require(SmallDisk(on: folder.path + "/cache", bytes: 8 << 20))
        let server = try GifreelProcess(["admin.token=secret"], directory: folder)
        func numbers() throws -> String {
            try GifreelCommandLine.run(
                ["cache", "--server", "http://127.0.0.1:\(server.port)"], environment: ["GIFREEL_ADMIN_TOKEN": "secret"]
            ).output
        }
        let stored = try server.mp4(origin.url("/0.gif"))
        #expect(try numbers().contains(" bytes free on the disk") && !numbers().contains("storing"))
        #expect(stored["cache-status"] == "gifreel; fwd=miss; stored")
        disk.fill()
        for number in 1..<6 {
            let miss = try server.mp4(origin.url("/\(number).gif"))
            #expect(miss.status == 200 && miss["cache-status"] == "gifreel; fwd=miss; detail=disk-full")
            #expect(try MP4Boxes(miss.body).durations.first == 3 + number)
            #expect(try server.mp4(origin.url("/0.gif")).body == stored.body)
        }
        let full = try numbers()
        #expect(full.contains("storing      nothing: disk-full"), "\(full)")
        let metrics = try server.request("GET", "/metrics").text
        #expect(metrics.contains("\ngifreel_cache_storing 0\n") && metrics.contains("\ngifreel_cache_disk_free_bytes "))
        disk.empty()
        try blockUntil("a hit") { try server.mp4(origin.url("/6.gif"))["cache-status"] == "gifreel; hit" }
        server.kill()
        disk.unmount()
    }

    /// What is at the path later may be another server's directory.
    @Test func aDirectoryRemovedUnderTheServerFailsNoRequestAndEndsStoring() throws {
        let origin = try origin()
        defer { origin.stop() }
        let server = try GifreelProcess()
        let first = try server.mp4(origin.url("/0.gif"))
        try FileManager.default.removeItem(at: server.directory.appendingPathComponent("cache"))
        #expect(try server.mp4(origin.url("/0.gif")).body == first.body)
        #expect(try server.mp4(origin.url("/1.gif")).status == 200)
        try server.waitForLog("was removed or replaced; nothing is stored until the server is restarted")
        for _ in 0..<2 {
            let miss = try server.mp4(origin.url("/2.gif"))
            #expect(miss.status == 200 && miss["cache-status"]?.hasPrefix("gifreel; fwd=miss; detail=") == true)
        }
        #expect(try server.mp4(origin.url("/0.gif")).body == first.body)
    }

    @Test(.enabled(if: WriteProtection.isPossible, "neither chmod nor chattr keeps this process from writing"))
    func aReadOnlyDirectoryGivesHitsAndAnswersMisses() throws {
        let origin = try origin()
        defer { origin.stop() }
        let server = try GifreelProcess()
        let first = try server.mp4(origin.url("/0.gif"))
        let parts = ["objects", "staging"].map { server.directory.path + "/cache/" + $0 }
        let protection = try parts.map { try #require(WriteProtection(of: $0)) }
        defer { protection.forEach { $0.end() } }
        let miss = try server.mp4(origin.url("/1.gif"))
        #expect(miss.status == 200 && miss["cache-status"] == "gifreel; fwd=miss; detail=read-only")
        #expect(try server.mp4(origin.url("/0.gif")).body == first.body)
        protection.forEach { $0.end() }
        try blockUntil("a hit") { try server.mp4(origin.url("/1.gif"))["cache-status"] == "gifreel; hit" }
    }

    /// The head of a response is sent before its bytes are read.
    @Test func aFileThatIsDamagedWhileInUseIsReplaced() throws {
        let gif = GIFBuilder.noise(frames: 2, width: 500, height: 500)
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        origin.on("/a.gif", .ok(gif))
        let server = try GifreelProcess()
        let target = "/png/\(origin.url("/a.gif"))"
        let first = try server.request("GET", target)
        // Not in memory.
        #expect(first.body.count > 64 << 10)
        let objects = server.directory.path + "/cache/objects"
        let names = FileManager.default.enumerator(atPath: objects)?.allObjects as? [String] ?? []
        let file = try #require(names.first { $0.hasSuffix(".png") })
        let handle = try FileHandle(forUpdating: URL(filePath: "\(objects)/\(file)"))
        try handle.truncate(atOffset: 1000)
        try handle.close()
        var broken = 0
        try blockUntil("a whole response") {
            if (try? server.request("GET", target))?.body == first.body { return true }
            broken += 1
            return false
        }
        // Many more would be broken until the check of all files, whose first pass begins a second after the start.
        #expect(broken < 10)
        #expect(try server.request("GET", target)["cache-status"] == "gifreel; hit")
    }

    @Test func aSecondServerNamesTheProcessThatUsesTheDirectory() throws {
        let server = try GifreelProcess()
        let error = #expect(throws: GifreelProcess.NotStarted.self) {
            try GifreelProcess(["cache.dir=\(server.directory.path)/cache"])
        }
        #expect(error?.log.contains("in use by another server (process \(server.identifier))") == true, "\(error?.log ?? "")")
    }
}
