import Foundation
import TestSupport
import Testing

@Suite(
    "Writes that a node queued wait for the purges that it missed", .serialized, .timeLimit(.minutes(10)),
    .enabled(if: RedisServer.isAvailable && S3Server.Kind.chosen.isInstalled))
struct HeldQueueTests {
    @Test func anObjectThatWasPurgedMeanwhileIsUploadedByNobody() async throws {
        let (purged, other) = (GIFBuilder.animation(frames: 3), GIFBuilder.animation(frames: 4))
        let lab = try await ClusterLab(["/a.gif": { _ in .ok(other) }])
        defer { lab.stop() }
        lab.proxy.faults = .refusing
        let upload = try lab.nodes[0].request("POST", "/mp4", body: purged)
        let location = try #require(upload["content-location"])
        try await waitUntil("the write to be in the outbox") {
            (try ClusterLab.cacheState(lab.nodes[0])["store"] as? [String: Any])?["queued"] as? Int == 1
        }
        lab.nodes[0].kill()
        // The killed node counts until its entry expires.
        #expect([200, 202].contains(try ClusterLab.purge(lab.nodes[1], location).status))
        try await lab.waitForUploads(of: lab.nodes[1])
        lab.proxy.faults = .none
        // The same directory, without the cluster.
        let settings = lab.settings("a", port: lab.proxy.port) + ["cache.dir=\(lab.nodes[0].directory.path)/cache"]
        let list = lab.nodes[0].directory.appendingPathComponent("list")
        try Data(lab.origin.url("/a.gif").utf8).write(to: list)
        let outcome = try GifreelCommandLine.run(
            ["prewarm", list.path]
                + (settings + ["sources.allow_private=127.0.0.1", "sources.ports=1-65535"]).flatMap { ["--set", $0] })
        #expect(outcome.code == 0 && outcome.log.contains("1 writes to the shared store stay queued"), "\(outcome)")
        #expect(try lab.nodes[1].request("GET", location).status == 404)
        // The node itself, which applies the purge first.
        let returned = try await lab.node("a", directory: lab.nodes[0].directory)
        defer { returned.kill() }
        try await lab.waitForUploads(of: returned)
        for node in [lab.nodes[1], returned] { #expect(try node.request("GET", location).status == 404) }
    }
}
