import Foundation
import SystemIO
import TestSupport
import Testing

@Suite("A mount serves the files of a directory", .timeLimit(.minutes(10))) struct FileMountTests {
    private let directory: ScratchDirectory
    private let gifs: URL
    private let gif = GIFBuilder.animation(frames: 4, width: 30, height: 20)

    init() throws {
        directory = try ScratchDirectory()
        gifs = URL(fileURLWithPath: directory.path).appendingPathComponent("gifs ü")
        try FileManager.default.createDirectory(at: gifs.appendingPathComponent("in"), withIntermediateDirectories: true)
        try Data(gif).write(to: gifs.appendingPathComponent("in/a b.gif"))
        try Data(gif).write(to: URL(fileURLWithPath: directory.path).appendingPathComponent("secret.gif"))
    }

    private func serve(_ more: [String] = []) throws -> GifreelProcess {
        try GifreelProcess(["admin.token=secret", "sources.allow=cdn.test", "mounts.disk.origin=file://\(gifs.path)"] + more)
    }

    @Test func filesAreConvertedListedAndPurged() throws {
        let server = try serve()
        let made = try server.request("GET", "/disk/in/a%20b.mp4")
        #expect(made.status == 200 && made["cache-status"] == "gifreel; fwd=miss; stored")
        #expect(try MP4Boxes(made.body).durations.count == 4)
        #expect(try server.request("GET", "/disk/in/a%20b.mp4")["cache-status"] == "gifreel; hit")
        #expect(try server.request("GET", "/disk/in/a%20b.json").text.contains("/disk/in/a%20b.mp4"))
        let url = PercentEncoding.encode("file://" + PercentEncoding.encode("\(gifs.path)/in/a b.gif", keepsSlashes: true))
        let token = ["Authorization: Bearer secret"]
        #expect(try server.request("GET", "/cache?url=\(url)", headers: token).text.contains("\"format\":\"mp4\""))
        let explained = try server.request("GET", "/explain?url=\(url)", headers: token)
        #expect(explained.text.contains("\"answer\":\"hit\"") && explained.text.contains("mounts.disk"), "\(explained.text)")
        #expect(try server.request("DELETE", "/cache?url=\(url)", headers: token).text.contains("\"purged\":2"))
    }

    @Test func prewarmListsMayNameFilesOfAMount() throws {
        let server = try serve()
        try Data(gif).write(to: gifs.appendingPathComponent("c.gif"))
        let entries = ["in/a b.gif", "c.gif", "../secret.gif"]
            .map { "FILE://" + PercentEncoding.encode("\(gifs.path)/\($0)", keepsSlashes: true) }
        let list = entries.map { "{\"url\":\"\($0)\"}" }.joined(separator: "\n")
        let token = ["Authorization: Bearer secret"]
        let location = try #require(
            try server.request("POST", "/prewarm", headers: token, body: Array(list.utf8))["location"])
        var report = ""
        try blockUntil("the end of the job") {
            report = try server.request("GET", location, headers: token).text
            return report.contains("\"state\":\"done\"")
        }
        #expect(report.contains("\"new\":2") && report.contains("\"failed\":1"), "\(report)")
        #expect(report.contains("\"code\":\"bad_source_url\"") && report.contains("secret.gif"), "\(report)")
        for path in ["in/a%20b.mp4", "c.mp4"] {
            #expect(try server.request("GET", "/disk/\(path)")["cache-status"] == "gifreel; hit")
        }
    }

    @Test func nothingOutsideTheDirectoryIsServed() throws {
        let server = try serve()
        for target in [
            "/disk/../secret.mp4", "/disk/..%2Fsecret.mp4", "/disk/%2e%2e/secret.mp4", "/disk/in/..%2F..%2Fsecret.mp4",
            "/disk/none.mp4",
        ] {
            let answer = try server.request("GET", target)
            #expect([400, 404].contains(answer.status), "\(target): \(answer.text)")
        }
        for target in ["/mp4/file://\(directory.path)/secret.gif", "/mp4?url=file%3A%2F%2F\(directory.path)%2Fsecret.gif"] {
            let answer = try server.request("GET", target.replacing(" ", with: "%20"))
            #expect(answer.status == 400 && answer.text.contains("bad_source_url"), "\(answer.text)")
        }
        let prefix = try serve(["mounts.disk.allow=out/"])
        #expect(try prefix.request("GET", "/disk/in/a%20b.mp4").status == 404)
    }

    @Test func aChangedFileIsConvertedAgainAndATouchedOneIsNot() throws {
        let server = try serve(["mounts.disk.fresh_for=0s"])
        let first = try server.request("GET", "/disk/in/a%20b.mp4")
        #expect(first.status == 200)
        let file = gifs.appendingPathComponent("in/a b.gif")
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1_000_000)], ofItemAtPath: file.path)
        try Data(GIFBuilder.animation(frames: 6, width: 30, height: 20)).write(to: file)
        try blockUntil("the new rendition") {
            let answer = try server.request("GET", "/disk/in/a%20b.mp4")
            return answer.status == 200 && answer["etag"] != first["etag"]
        }
        try FileManager.default.removeItem(at: file)
        try blockUntil("the rendition to be gone") {
            _ = try server.request("GET", "/disk/in/a%20b.mp4")
            return try server.request("GET", "/disk/in/a%20b.jpg,width=9").status == 404
        }
    }

    @Test(arguments: [
        ("mounts.disk.origin=file://relative", "must be an absolute path"),
        ("mounts.disk.origin=file:///", "must be an absolute path"),
        ("mounts.disk.origin=file:///a/../b", "must be an absolute path"), ("mounts.disk.query=forward", "files have no query"),
        ("mounts.disk.headers=A: b", "http and https origins"), ("mounts.disk.s3.region=r", "does not begin with s3://"),
    ])
    func aMountOfFilesThatCannotWorkStopsTheStart(_ setting: String, _ sentence: String) throws {
        let origin = ["--set", "mounts.disk.origin=file://\(gifs.path)"]
        let outcome = try GifreelCommandLine.run(["serve", "--check"] + origin + ["--set", setting])
        #expect(outcome.code == 1 && outcome.log.contains(sentence), "\(outcome.log)")
    }
}
