import Foundation
import TestSupport
import Testing

@Suite(
    "gifreel store prune deletes old renditions from the shared store", .serialized, .timeLimit(.minutes(10)),
    .enabled(if: S3Server.Kind.chosen.isInstalled))
struct StoreCommandTests {
    private func settings(_ store: S3Server) -> [String] {
        [
            "store.s3.endpoint=\(store.endpoint)", "store.s3.bucket=\(store.bucket)", "store.s3.path_style=true",
            "store.s3.access_key=\(store.accessKey)", "store.s3.secret_key=\(store.secretKey)", "store.s3.prefix=renditions",
        ]
    }

    private func prune(_ store: S3Server, _ arguments: [String]) throws -> ChildProcess.Outcome {
        try ChildProcess(
            GifreelProcess.executable, ["store", "prune"] + arguments + settings(store).flatMap { ["--set", $0] }
        ).finish()
    }

    @Test func renditionsAreCountedAndDeletedByTheirAge() async throws {
        let store = try S3Server()
        defer { store.stop() }
        let origin = try LoopbackOrigin([:])
        defer { origin.stop() }
        let node = try GifreelProcess(settings(store) + ["admin.token=secret"])
        for number in 0..<3 {
            origin.on("/\(number).gif", .ok(GIFBuilder.animation(frames: 2 + number)))
            #expect(try node.mp4(origin.url("/\(number).gif")).status == 200)
        }
        try await waitUntil("the uploads") {
            let state = try ClusterLab.cacheState(node)["store"] as? [String: Any]
            return state?["queued"] as? Int == 0
        }
        let young = try prune(store, ["--older-than", "30d"])
        #expect(young.code == 0 && young.output.hasPrefix("0 of 3 objects deleted, "), "\(young)")
        let dry = try prune(store, ["--older-than", "0s", "--dry-run"])
        // The times of the service have a resolution of a second.
        #expect(dry.code == 0 && dry.output.contains(" of 3 objects would be deleted, "), "\(dry)")
        try await waitUntil("the objects to be a second old") {
            try prune(store, ["--older-than", "0s", "--dry-run"]).output.hasPrefix("3 of 3 objects would be deleted, ")
        }
        let all = try prune(store, ["--older-than", "0s"])
        #expect(
            all.code == 0 && all.output.hasPrefix("3 of 3 objects deleted, ") && !all.output.contains(", 0 bytes"), "\(all)")
        #expect(try prune(store, ["--older-than", "0s"]).output.hasPrefix("0 of 0 objects deleted, "))
        // A rendition that was deleted is still served by the node that has it.
        #expect(try node.mp4(origin.url("/0.gif"))["cache-status"] == "gifreel; hit")
    }

    @Test func errorsNameTheirCause() throws {
        let store = try S3Server()
        let denied = try ChildProcess(
            GifreelProcess.executable,
            ["store", "prune", "--older-than", "1d"]
                + (settings(store) + ["store.s3.secret_key=wrong"]).flatMap { ["--set", $0] }
        ).finish()
        #expect(denied.code == 1 && denied.log.contains("The shared store could not be pruned"), "\(denied)")
        store.stop()
        let gone = try prune(store, ["--older-than", "1d"])
        #expect(gone.code == 1 && gone.log.contains("The shared store could not be pruned"), "\(gone)")
        let none = try ChildProcess(GifreelProcess.executable, ["store", "prune", "--older-than", "1d"]).finish()
        #expect(none.code == 1 && none.log.contains("store.s3.bucket is not set"), "\(none)")
        for arguments in [["--older-than", "old"], ["--older-than", "30"], ["--older-than", "1d", "--rate", "0"], []] {
            #expect(try prune(store, arguments).code == 64)
        }
    }
}
