import Digests
import Foundation
import HTTPClient
import SystemIO
import TestSupport
import Testing

@Suite(
    "A mount serves the objects of an S3 bucket", .serialized, .timeLimit(.minutes(10)),
    .enabled(if: S3Server.Kind.chosen.isInstalled && FileManager.default.isExecutableFile(atPath: "/usr/bin/curl")))
struct S3MountTests {
    private let gif = GIFBuilder.animation(frames: 4, width: 30, height: 20)

    /// Stores an object by curl, which does not sign a path that it sends as it is.
    private func put(_ bytes: [UInt8], _ key: String, _ store: S3Server) throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(bytes).write(to: file)
        let url = "\(store.endpoint)/\(store.bucket)/\(PercentEncoding.encode(key, keepsSlashes: true))"
        let signer = SignatureV4(region: "us-east-1", accessKey: store.accessKey, secretKey: store.secretKey)
        let fields = signer.sign("PUT", url, digest: Hex.encode(SHA256.hash(bytes)))
        let outcome = try ChildProcess(
            URL(fileURLWithPath: "/usr/bin/curl"),
            ["-sSf", "--path-as-is", "-T", file.path, url] + fields.flatMap { ["-H", $0] }, environment: [:]
        ).finish()
        #expect(outcome.code == 0, "\(outcome)")
    }

    private func mount(_ store: S3Server, _ more: [String] = []) throws -> GifreelProcess {
        try GifreelProcess(
            [
                "admin.token=secret", "mounts.pics.origin=s3://\(store.bucket)/in", "mounts.pics.s3.endpoint=\(store.endpoint)",
                "mounts.pics.s3.path_style=true", "mounts.pics.s3.access_key=\(store.accessKey)",
                "mounts.pics.s3.secret_key=\(store.secretKey)",
            ] + more)
    }

    @Test func objectsAreConvertedWhateverCharactersTheirKeysHave() throws {
        let store = try S3Server()
        defer { store.stop() }
        let server = try mount(store)
        let keys = ["cat", "a b", "a+b(1)", "ü/ß", "100%", "a=b&c", "q~_.-"]
        for key in keys {
            try put(gif, "in/\(key).gif", store)
            let target = "/pics/" + PercentEncoding.encode(key, keepsSlashes: true) + ".mp4"
            let answer = try server.request("GET", target)
            #expect(answer.status == 200, "\(key): \(answer.text.prefix(300))")
            #expect(try MP4Boxes(answer.body).durations.count == 4)
        }
        // Characters that need no encoding in a path may stand there as they are.
        #expect(try server.request("GET", "/pics/a+b(1).mp4").status == 200)
    }

    @Test func anObjectIsRequestedAgainByItsValidators() throws {
        let store = try S3Server()
        defer { store.stop() }
        let proxy = try FaultProxy(to: store.port)
        defer { proxy.stop() }
        try put(gif, "in/a.gif", store)
        let server = try mount(
            store, ["mounts.pics.s3.endpoint=http://127.0.0.1:\(proxy.port)", "mounts.pics.fresh_for=0s"])
        #expect(try server.request("GET", "/pics/a.mp4")["cache-status"] == "gifreel; fwd=miss; stored")
        try blockUntil("a renewal by 304") {
            let metrics = try server.request("GET", "/metrics", headers: ["Authorization: Bearer secret"]).text
            _ = try server.request("GET", "/pics/a.mp4")
            return metrics.contains("not_modified\"} 1") || metrics.contains("result=\"unmodified\"} 1")
        }
    }

    @Test func errorsOfTheServiceHaveTheCodesOfSources() throws {
        let store = try S3Server()
        defer { store.stop() }
        try put(gif, "in/a.gif", store)
        try put(gif, "secret.gif", store)
        try put(Array("no gif".utf8), "in/text.gif", store)
        let server = try mount(store)
        func code(_ target: String, _ server: GifreelProcess) throws -> String {
            let answer = try server.request("GET", target)
            let object = try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any]
            return "\(answer.status) \(object?["code"] as? String ?? "")"
        }
        #expect(try code("/pics/none.mp4", server) == "404 source_not_found")
        #expect(try code("/pics/text.mp4", server) == "415 not_an_animation")
        // No path leads out of the prefix, and no query to the service.
        for target in ["/pics/../secret.mp4", "/pics/..%2Fsecret.mp4", "/pics/%2e%2e/secret.mp4", "/pics//secret.mp4"] {
            let answer = try server.request("GET", target)
            #expect([400, 404].contains(answer.status), "\(target): \(answer.status)")
        }
        #expect(try code("/pics/a.mp4?versionId=1", server) == "400 bad_option")
        // Clients cannot have a request signed that no mount stands for.
        #expect(try server.request("GET", "/mp4/s3://\(store.bucket)/in/a.gif").status == 400)
        #expect(try code("/mp4?url=\(PercentEncoding.encode("s3://\(store.bucket)/in/a.gif"))", server) == "400 bad_source_url")
        #expect(try code("/mp4/\(store.endpoint)/\(store.bucket)/in/a.gif", server) == "502 source_failed")

        let denied = try mount(store, ["mounts.pics.s3.secret_key=wrong"])
        #expect(try code("/pics/a.mp4", denied) == "502 source_failed")
        let narrow = try mount(store, ["sources.max_bytes=64"])
        #expect(try code("/pics/a.mp4", narrow) == "422 too_large")
        let guarded = try mount(store, ["sources.allow_private=10.0.0.0/8"])
        #expect(try code("/pics/a.mp4", guarded) == "403 source_not_allowed")
    }

    @Test func aMountUsesTheKeysOfTheStoreIfItNamesNone() throws {
        let store = try S3Server()
        defer { store.stop() }
        try put(gif, "in/a.gif", store)
        let server = try GifreelProcess([
            "mounts.pics.origin=s3://\(store.bucket)/in/", "store.s3.endpoint=\(store.endpoint)", "store.s3.path_style=true",
            "store.s3.access_key=\(store.accessKey)", "store.s3.secret_key=\(store.secretKey)", "admin.token=secret",
        ])
        #expect(try server.request("GET", "/pics/a.mp4").status == 200)
        let purge = try server.request(
            "DELETE", "/cache?url=\(PercentEncoding.encode("s3://\(store.bucket)/in/a.gif"))",
            headers: ["Authorization: Bearer secret"])
        #expect(purge.text.contains("\"purged\":1"), "\(purge.text)")
        #expect(try server.request("GET", "/pics/a.mp4")["cache-status"] == "gifreel; fwd=miss; stored")
    }

    @Test(
        arguments: [
            (["mounts.a.origin=s3://b/k", "mounts.a.query=forward"], "without a query"),
            (["mounts.a.origin=s3://b/../k"], "empty parts"),
            (["mounts.a.origin=s3://b/k", "mounts.a.s3.access_key=x"], "both access_key and secret_key"),
            (["mounts.a.origin=https://example.com/", "mounts.a.s3.region=x"], "does not begin with s3://"),
            (
                ["mounts.a.origin=s3://b/k", "mounts.b.origin=s3://b/l", "mounts.b.s3.endpoint=http://h.test:9"],
                "another mount reaches a bucket b"
            ),
        ])
    func aConfigurationThatCannotWorkStopsTheStart(_ settings: [String], _ part: String) throws {
        let outcome = try ChildProcess(
            GifreelProcess.executable, ["serve", "--check"] + settings.flatMap { ["--set", $0] }
        ).finish()
        #expect(outcome.code == 1 && outcome.log.contains(part), "\(outcome)")
    }
}
