import Foundation
import TestSupport
import Testing

@Suite("A private origin is available through its mount only", .timeLimit(.minutes(10))) struct PrivateOriginTests {
    private let gif = GIFBuilder.animation(frames: 4)

    /// An origin that demands a key below `/private/`, and redirects to itself and elsewhere.
    private func origin(redirectingTo other: LoopbackOrigin) throws -> LoopbackOrigin {
        let guarded: LoopbackOrigin.Handler = { [gif] request in
            let isKnown = request.headers["x-key"] == "s3cret" && request.headers["user-agent"] == "m/1 (a@b.test)"
            return isKnown ? .ok(gif, ["ETag: \"1\""]) : .status(403)
        }
        return try LoopbackOrigin([
            "/private/a.gif": guarded, "/private/b.gif": guarded,
            "/private/away.gif": { _ in .redirect(to: other.url("/seen.gif")) },
            "/open.gif": { _ in .redirect(to: "/private/a.gif") },
        ])
    }

    @Test func itsFieldsAreSentForItsOwnSourcesAndNowhereElse() throws {
        let elsewhere = try LoopbackOrigin([
            "/seen.gif": { [gif] request in
                let isPlain = request.headers["x-key"] == nil && request.headers["user-agent"]?.hasPrefix("gifreel/") == true
                return isPlain ? .ok(gif) : .status(500)
            }
        ])
        defer { elsewhere.stop() }
        let origin = try origin(redirectingTo: elsewhere)
        defer { origin.stop() }
        let server = try GifreelProcess([
            "mounts.m.origin=\(origin.url("/private/"))",
            "mounts.m.headers=X-Key: s3cret, X-Other: 1, User-Agent: m/1 (a@b.test)",
        ])
        #expect(try server.request("GET", "/m/a.mp4").status == 200)
        #expect(try server.request("GET", "/m/a.html").status == 200)
        // A host to which the origin redirects does not get them.
        #expect(try server.request("GET", "/m/away.mp4").status == 200)
        #expect(elsewhere.count("/seen.gif") == 1)
        // Without the mount there is neither a fetch nor a stored rendition.
        for target in ["/mp4/\(origin.url("/private/a.gif"))", "/json/\(origin.url("/private/b.gif"))"] {
            let refused = try server.request("GET", target)
            #expect(refused.status == 403 && refused.text.contains("source_not_allowed"), "\(target)")
        }
        // A source that redirects to the origin does not get what only the fields open.
        #expect(try server.request("GET", "/mp4/\(origin.url("/open.gif"))").status == 403)
    }

    @Test func aFieldThatCannotBeSentStopsTheStart() throws {
        for headers in ["X-Key", "Host: a", "X Key: a", "Range: bytes=0-1"] {
            let error = #expect(throws: GifreelProcess.NotStarted.self, "\(headers)") {
                try GifreelProcess(["mounts.m.origin=http://a.test/", "mounts.m.headers=\(headers)"])
            }
            #expect(error?.log.contains("is not a field “Name: value” that may be set") == true, "\(error?.log ?? "")")
        }
        let error = #expect(throws: GifreelProcess.NotStarted.self) {
            try GifreelProcess([
                "mounts.m.origin=http://a.test/", "mounts.m.headers=X-Key: 1", "mounts.n.origin=http://a.test/below/",
            ])
        }
        #expect(error?.log.contains("mounts.n and mounts.m have overlapping origins") == true, "\(error?.log ?? "")")
    }
}
