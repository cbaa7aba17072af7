import Fetch
import Foundation
import Media
import Renditions
import TestSupport
import Testing

@testable import Web

/// `on_miss=queue`: a rendition that is not stored is answered with 404 at once, and produced in the background.
@Suite("Requests with on_miss=queue", .timeLimit(.minutes(10))) struct QueuedRenditionTests {
    private static let gif = GIFBuilder.animation()
    private let paths: [String: LoopbackOrigin.Handler] = [
        "/a.gif": { _ in .ok(gif) }, "/text.gif": { _ in .ok(Array("<html>".utf8)) },
        "/private.gif": { _ in .ok(gif, ["Cache-Control: no-store"]) },
    ]

    @Test func aMissIsAnsweredAtOnceAndTheNextVisitorHasTheRendition() async throws {
        try await WebFixture.run(paths) { web async throws in
            let target = web.target("jpg,on_miss=queue", "/a.gif")
            let miss = try await web.request("GET", target)
            #expect(miss.status == 404 && miss.code == "not_ready" && miss["cache-control"] == "no-store")
            #expect(miss["cache-status"] == "gifreel; fwd=miss; detail=not-ready" && miss["access-control-allow-origin"] == "*")
            try await waitUntil("the rendition") { web.outcomes.all == [.made] }
            let hit = try await web.request("GET", target)
            #expect(hit.status == 200 && hit["cache-status"] == "gifreel; hit")
            #expect(hit.body == (try await web.request("GET", web.target("jpg", "/a.gif"))).body)
            #expect(web.outcomes.all == [.made] && web.origin.count("/a.gif") == 1)
        }
    }

    @Test(.enabled(if: LinkedLibraries.has(.av1))) func anAV1IsProducedBehindTheVideoThatVisitorsWaitFor() async throws {
        try await WebFixture.run(paths) { web async throws in
            let smaller = web.target("mp4,codec=av1,on_miss=queue", "/a.gif")
            #expect(try await web.request("HEAD", smaller).status == 404)
            try await waitUntil("the video in AV1") { web.outcomes.all == [.made] }
            for target in [smaller, web.target("mp4", "/a.gif")] {
                #expect(try await web.request("GET", target)["cache-status"] == "gifreel; hit", "\(target)")
            }
        }
    }

    @Test func aSourceThatIsKnownToFailIsAnsweredWithItsProblem() async throws {
        try await WebFixture.run(paths) { web async throws in
            let target = web.target("mp4,on_miss=queue", "/text.gif")
            #expect(try await web.request("GET", target).status == 404)
            try await waitUntil("the failure") { web.outcomes.all == [.failed] }
            let known = try await web.request("GET", target)
            #expect(known.status == 415 && known.code == "not_an_animation")
            #expect(web.outcomes.all == [.failed])
        }
    }

    @Test(.enabled(if: LinkedLibraries.has(.av1))) func nothingIsEncodedThatItsOriginForbidsToStore() async throws {
        try await WebFixture.run(paths) { web async throws in
            let target = web.target("mp4,codec=av1,on_miss=queue", "/private.gif")
            #expect(try await web.request("GET", target).status == 404)
            try await waitUntil("the entry") { web.outcomes.all == [.failed] }
            #expect(try await web.request("GET", target).status == 404)
        }
    }

    @Test func aClientWithoutAnAllowanceQueuesNothing() async throws {
        try await WebFixture.run(paths) { settings in
            settings.policy.rateLimit = RateLimit(perMinute: 1, burst: 1)
        } _: { web async throws in
            #expect(try await web.request("GET", web.target("png", "/a.gif")).status == 200)
            #expect(try await web.request("GET", web.target("jpg,on_miss=queue", "/a.gif")).status == 404)
            let source = try SourceURL(web.origin.url("/a.gif"))
            #expect(!web.background.contains(RenditionRequest(Rendition(format: .jpg), of: source)))
            #expect(web.outcomes.all.isEmpty)
        }
    }

    @Test func aClientThatPrefersAStatusGetsOne() async throws {
        try await WebFixture.run(paths) { web async throws in
            let accepted = try await web.request(
                "GET", web.target("jpg,on_miss=queue", "/a.gif"), headers: ["Prefer: respond-async"])
            #expect(accepted.status == 202 && accepted["location"]?.hasPrefix("/status/") == true)
        }
    }

    @Test func uploadsAndNegotiatedRequestsHaveNoSuchOption() async throws {
        try await WebFixture.run(paths) { settings in
            var mount = Mount(origin: try SourceURL("http://origin.test/"))
            mount.negotiates = true
            settings.policy.mounts = ["m": mount]
        } _: { web async throws in
            for (method, target) in [("POST", "/mp4,on_miss=queue"), ("GET", "/m/a.gif?on_miss=queue")] {
                let refused = try await web.request(method, target)
                #expect(refused.status == 400 && refused.code == "bad_option", "\(target)")
                #expect(refused.detail?.contains("“on_miss”") == true, "\(target)")
            }
        }
    }
}
