import Fetch
import Renditions
import SystemIO
import TestSupport
import Testing

@testable import Web

@Suite("The address of a rendition is the request's target without the callback") struct CallbackTargetTests {
    private static let key = "an-example-key-of-at-least-32-bytes"
    private static let hook = "callback=https%3A%2F%2Fhook.test%2Fx"

    private func parsed(_ target: String) throws -> ParsedTarget {
        var mount = Mount(origin: try SourceURL("https://example.com/up"))
        mount.negotiates = true
        return try RouteParser(mounts: ["media": mount]).parse(target)
    }

    @Test(
        arguments: [
            ("/mp4,\(hook),width=20/https://a.test/x.gif?callback=1", "/mp4,width=20/https://a.test/x.gif?callback=1"),
            ("/mp4,width=20,\(hook)/https%3A%2F%2Fa.test%2Fx.gif", "/mp4,width=20/https%3A%2F%2Fa.test%2Fx.gif"),
            ("/mp4/https%3A%2F%2Fa.test%2Fx.gif?\(hook)&width=20", "/mp4/https%3A%2F%2Fa.test%2Fx.gif?width=20"),
            ("/mp4?url=https://a.test/x.gif&\(hook)", "/mp4?url=https://a.test/x.gif"),
            ("/html,on_miss=original,\(hook)/https://a.test/x.gif", "/html,on_miss=original/https://a.test/x.gif"),
            ("/media/CAT.GIF?\(hook)", "/media/CAT.GIF"), ("/media/CAT.GIF?width=20&\(hook)", "/media/CAT.GIF?width=20"),
            ("/media/cat.html?\(hook)&on_error=original", "/media/cat.html?on_error=original"),
            ("/mp4,width=20/https://a.test/x.gif", "/mp4,width=20/https://a.test/x.gif"),
            (
                "/mp4,width%3D20,callback%3Dhttps%253A%252F%252Fhook.test/https://a.test/x.gif",
                "/mp4,width%3D20/https://a.test/x.gif"
            ),
            (
                "/mp4%2Cwidth=20%2Ccallback=https%253A%252F%252Fhook.test/https://a.test/x.gif",
                "/mp4,width=20/https://a.test/x.gif"
            ),
        ])
    func everythingElseStaysAsTheClientWroteIt(_ target: String, _ address: String) throws {
        #expect(try parsed(target).withoutCallback(target, keys: SigningKeys()) == address)
    }

    @Test(arguments: [Rendition.Format.mp4, .html])
    func aSignedTargetIsSignedAgain(_ format: Rendition.Format) throws {
        let keys = SigningKeys([Self.key])
        let signer = keys
        let source = try SourceURL("https://a.test/x.gif")
        let width = QueryItem(name: "width", value: "20")
        let callback = QueryItem(name: "callback", value: "https://hook.test/x")
        let signed = try #require(signer.target(format.rawValue, [callback, width], of: source, expires: 2_000_000_000))
        // A slash in an option would end the segment.
        let target = signed.replacing("https://hook.test/x", with: "https%3A%2F%2Fhook.test%2Fx")
        var asked = try parsed(target)
        let check = SignatureCheck(
            keys: keys, isRequired: true, clock: TimeSource(unixSeconds: { 1 }, monotonicNanoseconds: { 0 }))
        asked.key = try check.verify(try #require(asked.credentials), of: asked.source, rule: nil)
        let address = asked.withoutCallback(target, keys: keys)
        #expect(address == signer.target(format.rawValue, [width], of: source, expires: 2_000_000_000))
    }

    @Test func aRequestThatNeedsNoSignatureObtainsNone() throws {
        let target = "/mp4,\(Self.hook),sig=abc/https://a.test/x.gif"
        let address = try parsed(target).withoutCallback(target, keys: SigningKeys([Self.key]))
        #expect(address == "/mp4,sig=abc/https://a.test/x.gif")
    }
}
