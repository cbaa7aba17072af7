import Foundation
import Glibc
import Store
import TestSupport
import Testing

/// Two nodes with Redis and an S3-compatible store, as users run them.
@Suite(
    "Nodes share renditions, misses, purges and prewarm lists", .serialized, .timeLimit(.minutes(10)),
    .enabled(if: RedisServer.isAvailable && S3Server.Kind.chosen.isInstalled))
struct ClusterTests {
    private let gif = GIFBuilder.animation(frames: 6, width: 33, height: 21, delay: 7)

    @Test func aRenditionOfOneNodeIsTakenFromTheStoreByAnother() async throws {
        let gif = gif
        let lab = try await ClusterLab(["/a.gif": { _ in .ok(gif) }])
        defer { lab.stop() }
        let first = try lab.nodes[0].mp4(lab.origin.url("/a.gif"))
        #expect(first["cache-status"] == "gifreel; fwd=miss; stored")
        try await lab.waitForUploads(of: lab.nodes[0])
        let second = try lab.nodes[1].mp4(lab.origin.url("/a.gif"))
        #expect(second["cache-status"] == "gifreel; fwd=miss; stored; detail=shared" && second.body == first.body)
        #expect(second["etag"] == first["etag"] && lab.origin.count("/a.gif") == 1)
        #expect(try lab.nodes[1].mp4(lab.origin.url("/a.gif"))["cache-status"] == "gifreel; hit")
        // Another URL with the same bytes is fetched, and not encoded.
        lab.origin.on("/b.gif", .ok(gif))
        lab.nodes[1].kill()
        let metrics = try lab.nodes[0].request("GET", "/metrics", headers: ["Authorization: Bearer secret"]).text
        #expect(metrics.contains("gifreel_store_requests_total{operation=\"put\"} "))
        #expect(metrics.contains("gifreel_cluster_flights_total{part=\"led\"} 1"))
    }

    @Test func theStepsOfASharedMissAreSpansOfItsTrace() async throws {
        let gif = gif
        let collector = try LoopbackOrigin(["/v1/traces": { _ in .ok(Array("{}".utf8)) }])
        defer { collector.stop() }
        let lab = try await ClusterLab(["/a.gif": { _ in .ok(gif) }])
        defer { lab.stop() }
        func spans() throws -> [ExportedSpan] { try collector.requests.flatMap { try ExportedSpan.all(in: $0.body) } }
        func expect(_ names: Set<String>, of node: GifreelProcess) async throws {
            let before = try spans().count
            #expect(try node.mp4(lab.origin.url("/a.gif")).status == 200)
            try await waitUntil("the spans \(names)") { try Set(spans().dropFirst(before).map(\.name)) == names }
            let new = try spans().dropFirst(before)
            let request = try #require(new.first { $0.name == "GET /mp4" })
            #expect(new.allSatisfy { $0.traceId == request.traceId && $0.statusCode == nil })
            #expect(new.allSatisfy { $0.name == "GET /mp4" || $0.parentSpanId == request.spanId }, "\(new)")
            // Requests to the store are those of a client.
            #expect(new.allSatisfy { !$0.name.hasPrefix("store") || $0.kind == 3 })
        }
        let traced = "tracing.endpoint=\(collector.url("/v1/traces"))"
        let first = try await lab.node("c", [traced])
        defer { first.kill() }
        let second = try await lab.node("d", [traced])
        defer { second.kill() }
        try await expect(["GET /mp4", "join", "fetch", "store lookup", "queue", "convert", "publish", "store"], of: first)
        try await lab.waitForUploads(of: first)
        try await expect(["GET /mp4", "join", "store lookup"], of: second)
    }

    @Test func concurrentMissesOnTwoNodesShareOneFetchAndOneConversion() async throws {
        let (gif, gate) = (gif, try LoopbackGate())
        let lab = try await ClusterLab(["/a.gif": { _ in LoopbackAnswer.ok(gif).after(gate) }])
        defer { lab.stop() }
        var first = try RawHTTPClient(port: lab.nodes[0].port)
        var second = try RawHTTPClient(port: lab.nodes[1].port)
        let request = Array("GET /mp4/\(lab.origin.url("/a.gif")) HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
        try first.send(request)
        try second.send(request)
        try await waitUntil("the fetch") { lab.origin.count("/a.gif") == 1 }
        try await waitUntil("two misses") {
            try lab.nodes.allSatisfy { try ClusterLab.cacheState($0)["in_progress"] as? Int == 1 }
        }
        gate.open()
        let answers = [try first.readResponse(), try second.readResponse()]
        #expect(answers.map(\.status) == [200, 200] && answers[0].body == answers[1].body)
        #expect(
            Set(answers.map { $0["cache-status"] ?? "" })
                == ["gifreel; fwd=miss; stored", "gifreel; fwd=miss; collapsed; detail=shared"])
        #expect(lab.origin.count("/a.gif") == 1)
    }

    @Test func aPurgeIsAppliedByEveryNodeBeforeItIsAnswered() async throws {
        let (old, new) = (gif, GIFBuilder.animation(frames: 3))
        let lab = try await ClusterLab(["/a.gif": { _ in .ok(old) }])
        defer { lab.stop() }
        let url = lab.origin.url("/a.gif")
        let before = try lab.nodes.map { try $0.mp4(url).body }
        #expect(before[0] == before[1])
        lab.origin.on("/a.gif", .ok(new))
        let purge = try ClusterLab.object(
            lab.nodes[0].request("PURGE", "/mp4/\(url)", headers: ["Authorization: Bearer secret"]).body)
        #expect(purge["nodes"] as? Int == 2 && purge["acknowledged"] as? Int == 2 && purge["purged"] as? Int == 2)
        #expect(purge["complete"] as? Bool == true)
        for node in lab.nodes.reversed() { #expect(try MP4Boxes(node.mp4(url).body).durations.count == 3) }
    }

    @Test func aCheckTriesTheServersOfTheSettings() async throws {
        let (redis, store) = (try await RedisServer(), try S3Server())
        defer {
            redis.stop()
            store.stop()
        }
        func check(_ settings: [String]) throws -> ChildProcess.Outcome {
            try ChildProcess(
                GifreelProcess.executable, ["serve", "--check", "--connect"] + settings.flatMap { ["--set", $0] }
            ).finish()
        }
        let bucket = [
            "store.s3.endpoint=\(store.endpoint)", "store.s3.bucket=\(store.bucket)", "store.s3.path_style=true",
            "store.s3.access_key=\(store.accessKey)", "store.s3.secret_key=\(store.secretKey)",
        ]
        let hook = ["purge.hooks.cdn.url=\(store.endpoint)/x"]
        let good = try check(["cluster.redis=\(redis.address)"] + bucket + hook)
        #expect(good.code == 0, "\(good)")
        for name in ["# cluster.redis: ", "# store.s3: ", "# purge.hooks.cdn: "] { #expect(good.output.contains(name)) }
        try redis.run("ACL", "SETUSER", "default", "-xclaim")
        let bad = try check(
            ["cluster.redis=\(redis.address)"] + bucket.dropLast() + [
                "store.s3.secret_key=wrong", "purge.hooks.cdn.url=http://127.0.0.1:1/",
            ])
        #expect(bad.code == 1 && bad.log.contains("cluster.redis: ") && bad.log.contains("+xclaim"), "\(bad)")
        #expect(bad.log.contains("store.s3: ") && bad.log.contains("purge.hooks.cdn: "), "\(bad)")
        let alone = try GifreelCommandLine.run(["serve", "--connect"])
        #expect(alone.code == 64 && alone.log.contains("--connect needs --check."))
    }

    @Test func oneKeyOfAPairIsRefused() throws {
        for (set, other) in [("access_key", "secret_key"), ("secret_key", "access_key")] {
            let outcome = try GifreelCommandLine.run([
                "serve", "--check", "--set", "store.s3.bucket=b", "--set", "store.s3.endpoint=http://localhost:1", "--set",
                "store.s3.\(set)=x",
            ])
            #expect(outcome.code == 1 && outcome.log.contains("store.s3.\(set) must be set together"), "\(other): \(outcome)")
        }
        for (name, code) in [("AWS_ACCESS_KEY_ID", Int32(1)), ("AWS_SESSION_TOKEN", 0)] {
            let outcome = try GifreelCommandLine.run(
                ["serve", "--check", "--set", "store.s3.bucket=b", "--set", "store.s3.endpoint=http://localhost:1"],
                environment: [name: "x"])
            #expect(outcome.code == code, "\(outcome)")
        }
    }

    @Test func aStoreWithoutKeysIsNamedOnceInTheLog() async throws {
        let node = try GifreelProcess(
            ["store.s3.bucket=b", "store.s3.endpoint=http://localhost:1"],
            environment: ["AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""])
        let line = "Requests to the shared store are not signed"
        try await waitUntil("the line") { node.log.contains(line) }
        #expect(node.terminate() == 0)
        #expect(node.log.split(separator: "\n").count { $0.contains(line) } == 1)
    }

    @Test func keysOfARoleSignTheRequestsOfTheStoreAndOfMounts() async throws {
        let store = try S3Server()
        defer { store.stop() }
        let container = try LoopbackOrigin()
        defer { container.stop() }
        container.on(
            "/keys",
            .ok(Array(#"{"AccessKeyId":"\#(store.accessKey)","SecretAccessKey":"\#(store.secretKey)"}"#.utf8)))
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(GIFBuilder.animation(frames: 2)) }])
        defer { origin.stop() }
        let node = try GifreelProcess(
            [
                "store.s3.endpoint=\(store.endpoint)", "store.s3.bucket=\(store.bucket)", "store.s3.path_style=true",
                "admin.token=secret", "mounts.pics.origin=s3://\(store.bucket)/in", "store.s3.lookup_timeout=10s",
            ],
            environment: [
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": container.url("/keys"), "AWS_ACCESS_KEY_ID": "", "HOME": "/nonexistent",
            ])
        #expect(try node.mp4(origin.url("/a.gif")).status == 200)
        try await waitUntil("the upload") {
            let state = try ClusterLab.cacheState(node)["store"] as? [String: Any]
            return state?["queued"] as? Int == 0
        }
        // The bucket refuses requests that are not signed.
        #expect(try node.request("GET", "/pics/none.mp4").status == 404)
        #expect(node.log.contains("the credentials service of the container"))
        #expect(!node.log.contains("suspended"), "\(node.log)")
        #expect(container.count("/keys") == 1)
    }

    @Test func aPurgeIsReportedByTheOtherNodeAndHooksFollowItsCompletion() async throws {
        let cdn = try LoopbackOrigin(["/purge": { _ in .ok([]) }])
        defer { cdn.stop() }
        let lab = try await ClusterLab([:], ["purge.hooks.cdn.url=\(cdn.url("/purge"))", "purge.hooks.cdn.body={}"])
        defer { lab.stop() }
        Glibc.kill(lab.nodes[1].identifier, SIGSTOP)
        let purge = try lab.nodes[0].request(
            "DELETE", "/cache?all=true&wait=0s", headers: ["Authorization: Bearer secret"])
        let location = try #require(purge["location"])
        #expect(purge.status == 202 && cdn.count("/purge") == 0)
        Glibc.kill(lab.nodes[1].identifier, SIGCONT)
        try await waitUntil("the purge to be complete") {
            let answer = try lab.nodes[1].request("GET", location, headers: ["Authorization: Bearer secret"])
            return try answer.status == 200 && ClusterLab.object(answer.body)["complete"] as? Bool == true
        }
        try await waitUntil("the hook") { cdn.count("/purge") >= 1 }
        let members = try #require(try ClusterLab.cluster(lab.nodes[0])["members"] as? [[String: Any]])
        #expect(members.count == 2)
        // The stream has no purge before this one, and a heartbeat may be older than it.
        for member in members { #expect((member["lag"] as? Double).map { $0 < 600 } ?? false, "\(member)") }
        let command = try run(["purge", "--all", "--wait", "30s", "--token", "secret"], on: lab.nodes[0])
        #expect(command.code == 0 && command.output.contains("applied by 2 of 2 nodes"), "\(command)")
    }

    @Test func jobsAreListedByEveryNodeAndARepeatedListIsOneJob() async throws {
        let lab = try await ClusterLab([:])
        defer { lab.stop() }
        let token = ["Authorization: Bearer secret"]
        let list = Array("{\"url\":\"\(lab.origin.url("/x.gif"))\"}".utf8)
        let answers = try lab.nodes.map {
            try $0.request("POST", "/prewarm", headers: token + ["Idempotency-Key: k"], body: list)
        }
        #expect(answers.map(\.status) == [202, 202] && answers[0].body == answers[1].body)
        for node in lab.nodes {
            let jobs = try ClusterLab.object(node.request("GET", "/prewarm", headers: token).body)["jobs"] as? [[String: Any]]
            #expect(jobs?.count == 1)
        }
        let location = try #require(answers[0]["location"])
        try lab.redis.kill()
        try await waitUntil("503 without Redis") {
            try lab.nodes[1].request("DELETE", location, headers: token).status == 503
        }
    }

    @Test func aListWithACallbackIsKnownToEveryNodeAndReportedOnce() async throws {
        let receiver = try LoopbackOrigin(["/hooks/list": { $0.number == 1 ? .status(503) : .ok([]) }])
        defer { receiver.stop() }
        let pattern = receiver.url("/hooks/").replacing("http://", with: "")
        let lab = try await ClusterLab([:], ["webhooks.allow=\(pattern)", "webhooks.key=\(String(repeating: "k", count: 32))"])
        defer { lab.stop() }
        let token = ["Authorization: Bearer secret"]
        let list = Array((0..<4).map { "{\"url\":\"\(lab.origin.url("/\($0).gif"))\"}" }.joined(separator: "\n").utf8)
        let accepted = try lab.nodes[0].request(
            "POST", "/prewarm?callback=\(receiver.url("/hooks/list"))", headers: token, body: list)
        let location = try #require(accepted["location"])
        #expect(try lab.nodes[1].request("GET", location, headers: token).status == 200)
        try await waitUntil("the report") { receiver.count("/hooks/list") == 2 }
        try await waitUntil("the report is done with") { try lab.redis.run("XLEN", "{gifreel}:v1:prewarm") == ":0\r\n" }
        #expect(receiver.count("/hooks/list") == 2)
        #expect(receiver.requests.last?.headers["gifreel-status"] == location)
    }

    /// Runs a command of the program that asks a node.
    private func run(_ arguments: [String], on node: GifreelProcess) throws -> ChildProcess.Outcome {
        try ChildProcess(GifreelProcess.executable, arguments + ["--server", "http://127.0.0.1:\(node.port)"]).finish()
    }

    @Test func nodesWorkAloneWithoutTheirEnginesAndShareAgainAfterwards() async throws {
        let gif = gif
        let lab = try await ClusterLab(["/a.gif": { _ in .ok(gif) }, "/b.gif": { _ in .ok(GIFBuilder.animation(frames: 4)) }])
        defer { lab.stop() }
        let target = "/mp4/\(lab.origin.url("/a.gif"))"
        #expect(try lab.nodes[0].request("GET", target).status == 200)
        try lab.redis.kill()
        lab.store.stop()
        #expect(try lab.nodes[0].request("GET", target)["cache-status"] == "gifreel; hit")
        for node in lab.nodes {
            #expect(try node.mp4(lab.origin.url("/b.gif")).status == 200)
            #expect(try node.request("GET", "/readyz").status == 200)
            #expect(try ClusterLab.cluster(node)["shared"] as? Bool == false)
        }
        let purge = try lab.nodes[0].request("PURGE", target, headers: ["Authorization: Bearer secret"])
        #expect(purge.status == 202)
        #expect(try ClusterLab.object(purge.body)["complete"] as? Bool == false)
        let command = try run(["purge", lab.origin.url("/a.gif"), "--token", "secret"], on: lab.nodes[0])
        #expect(command.code == 1 && command.output.contains("applied by 0 of "), "\(command)")
        #expect(command.output.contains("--wait 30s"), "\(command)")
        let alone = try run(["cache", "--token", "secret"], on: lab.nodes[0]).output
        #expect(alone.contains(/cluster      a-\S+ works alone; nodes: \d, waiting purges: 2/), "\(alone)")
        #expect(alone.contains(/store        \w+; waiting writes: [1-9]\d*, \d+ bytes/), "\(alone)")
        try await lab.redis.start()
        try lab.store.restart()
        for node in lab.nodes {
            try await waitUntil("the node shares again") { try ClusterLab.cluster(node)["shared"] as? Bool == true }
            try await lab.waitForUploads(of: node)
        }
        let shared = try run(["cache", "--token", "secret"], on: lab.nodes[0]).output
        #expect(shared.contains("store        available; waiting writes: 0, 0 bytes\n"), "\(shared)")
        #expect(shared.matches(of: /\n  [ab]-\S+: \d+\.\d+ s behind in purges/).count == 2, "\(shared)")
        #expect(lab.nodes[0].log.contains("the node works without the cluster"))
    }

    @Test func anUploadsObjectIsServedByTheOtherNodeUntilItIsPurged() async throws {
        let lab = try await ClusterLab([:])
        defer { lab.stop() }
        let upload = try lab.nodes[0].request("POST", "/mp4", body: gif)
        let location = try #require(upload["content-location"])
        // On a busy machine, the response does not wait for the store.
        var object = try lab.nodes[1].request("GET", location)
        try await waitUntil("the object to be in the store") {
            object = try lab.nodes[1].request("GET", location)
            return object.status == 200
        }
        #expect(object.body == upload.body)
        let purge = try lab.nodes[1].request("PURGE", location, headers: ["Authorization: Bearer secret"])
        #expect(purge.status == 200)
        for node in lab.nodes { #expect(try node.request("GET", location).status == 404) }
    }

    @Test func aPrewarmListIsReportedByEveryNodeAndEachURLIsFetchedOnce() async throws {
        let lab = try await ClusterLab([:])
        defer { lab.stop() }
        for number in 0..<8 { lab.origin.on("/\(number).gif", .ok(GIFBuilder.animation(frames: 2 + number))) }
        let list = (0..<8).map { "{\"url\":\"\(lab.origin.url("/\($0).gif"))\"}" }.joined(separator: "\n")
        let accepted = try ClusterLab.object(
            lab.nodes[0].request("POST", "/prewarm", headers: ["Authorization: Bearer secret"], body: Array(list.utf8)).body)
        let id = try #require(accepted["id"] as? String)
        try await waitUntil("the list is done") {
            let report = try ClusterLab.object(
                lab.nodes[1].request("GET", "/prewarm/\(id)", headers: ["Authorization: Bearer secret"]).body)
            return report["state"] as? String == "done" && report["done"] as? Int == 8 && report["failed"] as? Int == 0
        }
        #expect((0..<8).allSatisfy { lab.origin.count("/\($0).gif") == 1 })
    }

    @Test func theReportOnASharedListHasTheFieldsOfALocalOne() async throws {
        let lab = try await ClusterLab([:])
        defer { lab.stop() }
        let source = GIFBuilder.animation(frames: 40, width: 160, height: 120)
        lab.origin.on("/new.gif", .ok(source))
        lab.origin.on("/hit.gif", .ok(gif))
        let (new, hit, missing) = (lab.origin.url("/new.gif"), lab.origin.url("/hit.gif"), lab.origin.url("/missing.gif"))
        for node in lab.nodes { #expect(try node.mp4(hit).status == 200) }
        let list = [new, hit, missing].map { "{\"url\":\"\($0)\"}" }.joined(separator: "\n")
        let accepted = try ClusterLab.object(
            lab.nodes[0].request("POST", "/prewarm", headers: ["Authorization: Bearer secret"], body: Array(list.utf8)).body)
        let id = try #require(accepted["id"] as? String)
        var report: [String: Any] = [:]
        try await waitUntil("the list is done") {
            report = try ClusterLab.object(
                lab.nodes[1].request("GET", "/prewarm/\(id)", headers: ["Authorization: Bearer secret"]).body)
            return report["state"] as? String == "done"
        }
        let numbers = ["total", "done", "failed", "hits", "new"].map { report[$0] as? Int }
        #expect(numbers == [3, 3, 1, 1, 1])
        let sizes = (new: try lab.nodes[0].mp4(new).body.count, hit: try lab.nodes[0].mp4(hit).body.count)
        #expect(report["bytes"] as? Int == sizes.new + sizes.hit)
        #expect(report["saved"] as? Int == max(0, source.count - sizes.new) + max(0, gif.count - sizes.hit))
        let errors = try #require(report["errors"] as? [[String: String]])
        #expect(errors.map { $0["url"] } == [missing])
        #expect(errors.allSatisfy { $0["code"] == "source_not_found" && $0["detail"]?.contains(missing) == false })
    }

    /// It cannot be converted instead.
    @Test func anObjectThatOnlyTheStoreHasIsWaitedForLongerThanALookUp() async throws {
        let lab = try await ClusterLab([:])
        defer { lab.stop() }
        let upload = try lab.nodes[1].request("POST", "/mp4", body: gif)
        let location = try #require(upload["content-location"])
        try await lab.waitForUploads(of: lab.nodes[1])
        lab.proxy.faults = .delay(.milliseconds(200))
        let slow = try await lab.node(
            "c", ["store.s3.endpoint=http://127.0.0.1:\(lab.proxy.port)", "store.s3.lookup_timeout=50ms"])
        defer { slow.kill() }
        let object = try slow.request("GET", location)
        #expect(object.status == 200 && object.body == upload.body)
    }

    @Test func aPurgedObjectIsLoadedByNoNodeWhileItsDeletionWaits() async throws {
        let lab = try await ClusterLab([:])
        defer { lab.stop() }
        let upload = try lab.nodes[0].request("POST", "/mp4", body: gif)
        let location = try #require(upload["content-location"])
        try await lab.waitForUploads(of: lab.nodes[0])
        // The store is gone for the node that purges, and there for the other one.
        lab.proxy.faults = .refusing
        lab.proxy.closeConnections()
        #expect(try ClusterLab.purge(lab.nodes[0], location).status == 200)
        for node in lab.nodes { #expect(try node.request("GET", location).status == 404) }
        lab.proxy.faults = .none
        for node in lab.nodes { try await lab.waitForUploads(of: node) }
        for node in lab.nodes { #expect(try node.request("GET", location).status == 404) }
    }

    @Test func anObjectPurgedDuringAnOutageOfTheStoreStaysAwayAfterIt() async throws {
        let lab = try await ClusterLab([:])
        defer { lab.stop() }
        let upload = try lab.nodes[0].request("POST", "/mp4", body: gif)
        let location = try #require(upload["content-location"])
        try await lab.waitForUploads(of: lab.nodes[0])
        lab.store.stop()
        #expect(try ClusterLab.purge(lab.nodes[0], location).status == 200)
        // A node that comes after the purge refuses the object as well.
        let late = try await lab.node("c")
        defer { late.kill() }
        let all = lab.nodes + [late]
        for node in lab.nodes { Glibc.kill(node.identifier, SIGSTOP) }
        try lab.store.restart()
        // While the store counts as unavailable, the answer is 503.
        var status = 503
        try await waitUntil("the store is used again") {
            status = try late.request("GET", location).status
            return status != 503
        }
        #expect(status == 404)
        for node in lab.nodes { Glibc.kill(node.identifier, SIGCONT) }
        for node in all { #expect(try node.request("GET", location).status == 404) }
        for node in all { try await lab.waitForUploads(of: node) }
        for node in all { #expect(try node.request("GET", location).status == 404) }
        // The same bytes may come again.
        #expect(try late.request("POST", "/mp4", body: gif).status == 200)
        #expect(try late.request("GET", location).status == 200)
    }

    @Test func aNodeThatStopsSendsItsQueuedWritesFirst() async throws {
        let gif = gif
        let lab = try await ClusterLab(["/a.gif": { _ in .ok(gif) }])
        defer { lab.stop() }
        lab.proxy.faults = .delay(.milliseconds(300))
        #expect(try lab.nodes[0].mp4(lab.origin.url("/a.gif")).status == 200)
        #expect(lab.nodes[0].terminate() == 0)
        let other = try lab.nodes[1].mp4(lab.origin.url("/a.gif"))
        #expect(other["cache-status"]?.contains("detail=shared") == true, "\(other)")
    }

    @Test func theNumberOfNodesFollowsTheirComingAndGoingWithoutAPurge() async throws {
        let lab = try await ClusterLab([:])
        defer { lab.stop() }
        let third = try await lab.node("c")
        try await waitUntil("three nodes") { try lab.nodes.allSatisfy { try ClusterLab.cluster($0)["nodes"] as? Int == 3 } }
        third.kill()
        try await waitUntil("two nodes") { try lab.nodes.allSatisfy { try ClusterLab.cluster($0)["nodes"] as? Int == 2 } }
    }
}
