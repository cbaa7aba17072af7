import Fetch
import TestSupport
import Testing

@testable import Web

/// `on_larger=problem`: a page that has the source shows it instead of a larger rendition.
@Suite("Requests with on_larger=problem", .timeLimit(.minutes(10))) struct LargerRenditionTests {
    private static let tiny = GIFBuilder.animation()
    /// The same animation, with data behind its trailer that decoders skip.
    private static let long = tiny + [UInt8](repeating: 0, count: 100_000)
    private let paths: [String: LoopbackOrigin.Handler] = ["/tiny.gif": { _ in .ok(tiny) }, "/long.gif": { _ in .ok(long) }]

    @Test func aLargerRenditionIsRefusedWhetherItIsStoredOrNot() async throws {
        try await WebFixture.run(paths) { web async throws in
            let target = web.target("mp4,on_larger=problem", "/tiny.gif")
            for _ in 0..<3 {
                let refused = try await web.request("GET", target)
                #expect(refused.status == 404 && refused.code == "not_smaller")
                #expect(refused["cache-control"] == "public, max-age=60" && refused["access-control-allow-origin"] == "*")
            }
            let sent = try await web.request("GET", web.target("mp4", "/tiny.gif"))
            #expect(sent.status == 200 && sent["cache-status"] == "gifreel; hit" && sent.body.count > Self.tiny.count)
            #expect(web.origin.count("/tiny.gif") == 1)
        }
    }

    @Test func aSmallerRenditionIsSent() async throws {
        try await WebFixture.run(paths) { web async throws in
            let target = web.target("mp4,on_larger=problem", "/long.gif")
            for status in ["gifreel; fwd=miss; stored", "gifreel; hit", "gifreel; hit"] {
                let sent = try await web.request("GET", target)
                #expect(sent.status == 200 && sent["cache-status"] == status)
            }
            #expect(try await web.request("GET", web.target("mp4,on_larger=send", "/tiny.gif")).status == 200)
        }
    }

    @Test func theStatusOfARequestThatDoesNotWaitEndsAsAWaitingRequestWould() async throws {
        try await WebFixture.run(paths) { web async throws in
            for (path, code) in [("/tiny.gif", "not_smaller"), ("/long.gif", nil)] as [(String, String?)] {
                let target = web.target("mp4,on_larger=problem", path)
                let accepted = try await web.request("GET", target, headers: ["Prefer: respond-async"])
                let status = try #require(accepted["location"])
                try await waitUntil("the end of \(status)") {
                    ["done", "failed"].contains(try await web.request("GET", status).json()["state"] as? String)
                }
                let last = try await web.request("GET", status).json()
                let problem = last["problem"] as? [String: Any]
                #expect(problem?["code"] as? String == code && last["state"] as? String == (code == nil ? "done" : "failed"))
                #expect(last["url"] as? String == (code == nil ? target : nil))
                #expect(try await web.request("GET", target).status == (code == nil ? 200 : 404))
            }
        }
    }

    @Test func uploadsAndNegotiatedRequestsHaveNoSuchOption() async throws {
        try await WebFixture.run(paths) { settings in
            var mount = Mount(origin: try SourceURL("http://origin.test/"))
            mount.negotiates = true
            settings.policy.mounts = ["m": mount]
        } _: { web async throws in
            for (method, target) in [("POST", "/mp4,on_larger=problem"), ("GET", "/m/a.gif?on_larger=send")] {
                let refused = try await web.request(method, target)
                #expect(refused.status == 400 && refused.code == "bad_option", "\(target)")
                #expect(refused.detail?.contains("“on_larger”") == true, "\(target)")
            }
        }
    }
}
