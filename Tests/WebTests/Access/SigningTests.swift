import Fetch
import Renditions
import SystemIO
import TestSupport
import Testing

@testable import Web

@Suite("Signatures cover format, options and source") struct SigningTests {
    private static let key = "an-example-key-of-at-least-32-bytes"
    private static let other = "another-example-key-of-32-bytes-or-more"

    private func check(_ target: String, keys: [String] = [key], isRequired: Bool = true, at time: Int64 = 1_000) throws {
        let clock = TimeSource(unixSeconds: { time }, monotonicNanoseconds: { 0 })
        let mounts = ["media": Mount(origin: try SourceURL("https://example.com/up"))]
        let asked = try RouteParser(mounts: mounts).parse(target, hasBody: target.hasPrefix("/mp4,post"))
        let credentials = try #require(asked.credentials)
        try SignatureCheck(keys: SigningKeys(keys), isRequired: isRequired, clock: clock)
            .verify(credentials, of: asked.source, rule: asked.mount?.rule.requiresSignature)
    }

    private func code(_ target: String, keys: [String] = [key], isRequired: Bool = true, at time: Int64 = 1_000) -> String {
        do {
            try check(target, keys: keys, isRequired: isRequired, at: time)
            return "ok"
        } catch let problem as Problem {
            return problem.code
        } catch {
            return "\(error)"
        }
    }

    /// Worked out with `openssl dgst -sha256 -hmac`, so that the example in docs/access.md holds for other programs.
    @Test(arguments: [
        "/mp4,sig=C1Ga782pRjzHCXQjEwh0YeZDmUsH6bFdbPuOj40Sj7k/https://example.com/a.gif?v=2",
        "/mp4,quality=80,expires=2000000000,sig=jGUjKO449NlYUJPjfzSwfP7s5L0Q_Nr9guBiPvozIJc/https://example.com/a.gif?v=2",
        "/mp4?quality=80&sig=jGUjKO449NlYUJPjfzSwfP7s5L0Q_Nr9guBiPvozIJc&url=https%3A%2F%2Fexample.com%2Fa.gif%3Fv%3D2&expires=2000000000",
        "/mp4,expires=2000000000/https%3A%2F%2Fexample.com%2Fa.gif%3Fv%3D2?quality=80&sig=jGUjKO449NlYUJPjfzSwfP7s5L0Q_Nr9guBiPvozIJc",
    ])
    func theWorkedExampleHoldsInEveryForm(target: String) {
        #expect(code(target) == "ok")
    }

    /// Callbacks have queries, and titles have formulas.
    @Test func aValueMayHaveAnEqualsSign() throws {
        let source = try SourceURL("https://example.com/a.gif")
        let title = QueryItem(name: "title", value: "1+1=2")
        let target = try #require(SigningKeys([Self.key]).target("html", [title], of: source))
        #expect(code(target) == "ok" && code(target.replacing("%3D2", with: "=2")) == "ok", "\(target)")
        #expect(code(target.replacing("%3D2", with: "%3D3")) == "bad_signature")
    }

    @Test func aTitleMayHaveCommas() throws {
        let source = try SourceURL("https://example.com/a.gif")
        let title = QueryItem(name: "title", value: "Cats, dogs,")
        let target = try #require(SigningKeys([Self.key]).target("html", [title], of: source, expires: 2_000_000_000))
        #expect(code(target) == "ok", "\(target)")
        for other in ["Cats%2C%2C%20dogs%2C", "Cats%2C%20dogs", "Cats%20dogs"] {
            #expect(code(target.replacing("Cats%2C%20dogs%2C", with: other)) == "bad_signature", "\(other)")
        }
    }

    @Test func anOptionThatCannotBeSignedIsTheReason() {
        #expect(throws: Problem.badSignature(RequestSignature.unsignable)) {
            try check("/html,title=Cats%0Adogs,sig=AAAA/https://example.com/a.gif")
        }
    }

    @Test(arguments: [
        // Nothing, another source, another option, one more, one fewer, another time, another text of the same bytes.
        "/mp4/https://example.com/a.gif?v=2",
        "/mp4,sig=C1Ga782pRjzHCXQjEwh0YeZDmUsH6bFdbPuOj40Sj7k/https://example.com/a.gif?v=3",
        "/mp4,quality=81,expires=2000000000,sig=jGUjKO449NlYUJPjfzSwfP7s5L0Q_Nr9guBiPvozIJc/https://example.com/a.gif?v=2",
        "/mp4,bg=000000,sig=C1Ga782pRjzHCXQjEwh0YeZDmUsH6bFdbPuOj40Sj7k/https://example.com/a.gif?v=2",
        "/mp4,quality=60,sig=C1Ga782pRjzHCXQjEwh0YeZDmUsH6bFdbPuOj40Sj7k/https://example.com/a.gif?v=2",
        "/mp4,quality=80,sig=jGUjKO449NlYUJPjfzSwfP7s5L0Q_Nr9guBiPvozIJc/https://example.com/a.gif?v=2",
        "/mp4,expires=2000000001,quality=80,sig=jGUjKO449NlYUJPjfzSwfP7s5L0Q_Nr9guBiPvozIJc/https://example.com/a.gif?v=2",
        "/mp4,sig=C1Ga782pRjzHCXQjEwh0YeZDmUsH6bFdbPuOj40Sj7l/https://example.com/a.gif?v=2",
        "/mp4,sig=C1Ga782pRjzHCXQjEwh0YeZDmUsH6bFdbPuOj40Sj7k%3D/https://example.com/a.gif?v=2",
        "/mp4,sig=/https://example.com/a.gif?v=2", "/mp4,sig=%00/https://example.com/a.gif?v=2",
    ])
    func whatWasNotSignedIsRefused(target: String) {
        #expect(code(target) == "bad_signature")
    }

    @Test func anInvalidOptionIsReportedBeforeTheSignature() {
        #expect(code("/mp4,quality=0/https://example.com/a.gif") == "bad_option")
        #expect(code("/mp4,expires=soon/https://example.com/a.gif") == "bad_option")
        #expect(code("/mp4,expires=1,expires=2/https://example.com/a.gif") == "bad_option")
    }

    @Test func theSourceMayBeSignedAsItIsWrittenOrInItsCanonicalForm() throws {
        let written = "HTTPS://EXAMPLE.com:443/a/../b.gif"
        for signed in [written, "https://example.com/b.gif"] {
            let text = try #require(SignedText("mp4", options: [], source: signed))
            let sig = try #require(SigningKeys([Self.key]).signature(of: text.text))
            #expect(code("/mp4,sig=\(sig)/\(written)") == "ok")
            #expect(code("/mp4,sig=\(sig)/https://example.com/b.gif") == (signed == written ? "bad_signature" : "ok"))
        }
    }

    @Test func allKeysVerifyAndTheFirstSigns() {
        let target = "/mp4,sig=C1Ga782pRjzHCXQjEwh0YeZDmUsH6bFdbPuOj40Sj7k/https://example.com/a.gif?v=2"
        #expect(code(target, keys: [Self.other, Self.key]) == "ok")
        #expect(code(target, keys: [Self.other]) == "bad_signature")
    }

    @Test func aSignedRequestEndsAtItsTime() {
        let target =
            "/mp4,expires=2000000000,quality=80,sig=jGUjKO449NlYUJPjfzSwfP7s5L0Q_Nr9guBiPvozIJc/https://example.com/a.gif?v=2"
        #expect(code(target, at: 1_999_999_999) == "ok")
        #expect(code(target, at: 2_000_000_000) == "expired_signature")
        // A signature that fits nothing tells nothing of its time.
        #expect(code(target.replacing("quality=80", with: "quality=81"), at: 2_000_000_000) == "bad_signature")
    }

    @Test func withoutKeysOnlyTheExpiryIsChecked() {
        #expect(code("/mp4,sig=anything/https://example.com/a.gif", keys: [], isRequired: false) == "ok")
        #expect(code("/mp4,expires=999/https://example.com/a.gif", keys: [], isRequired: false) == "expired_signature")
    }

    @Test func aWrongSignatureIsRefusedEvenIfNoneIsRequired() {
        #expect(code("/mp4/https://example.com/a.gif", isRequired: false) == "ok")
        #expect(code("/mp4,sig=AAAA/https://example.com/a.gif", isRequired: false) == "bad_signature")
    }

    @Test func theSignatureOfAMountCoversTheURLAtItsOrigin() throws {
        let signer = SigningKeys([Self.key])
        let target = try #require(signer.target("mp4", of: try SourceURL("https://example.com/up/a/b.gif")))
        let sig = try #require(target.split(separator: "/").first).dropFirst("mp4,".count)
        #expect(code("/media/a/b.mp4?\(sig)") == "ok")
        #expect(code("/media/a/b.gif?\(sig)") == "ok")
        #expect(code("/media/a/c.mp4?\(sig)") == "bad_signature")
        #expect(code("/media/a/b.mp4") == "bad_signature")
    }

    @Test func anUploadIsSignedWithoutASource() throws {
        let asked = try RouteParser(mounts: [:]).parse(
            "/mp4,quality=80,sig=5npvdJMMoGP8G4UoZuNHoIgjaJx7CszaasvlT0V77OA", hasBody: true)
        let clock = TimeSource(unixSeconds: { 0 }, monotonicNanoseconds: { 0 })
        let check = SignatureCheck(keys: SigningKeys([Self.key]), isRequired: true, clock: clock)
        try check.verify(try #require(asked.credentials), of: nil, rule: nil)
        #expect(throws: Problem.badSignature("The request needs a signature.")) {
            try check.verify(RequestSignature(name: "mp4"), of: nil, rule: nil)
        }
    }

    /// Whatever is signed, the service that knows the key answers it, and reads of it what was meant.
    @Test func theParserReadsTheTargetsOfTheSigner() throws {
        let signer = SigningKeys([Self.key])
        for source in ["https://example.com/a.gif", "http://a.test:8080/x//y.gif?a=b&c=%2F,d", "https://[2001:db8::1]/é.gif"] {
            let url = try SourceURL(source)
            let options = [QueryItem(name: "quality", value: "7"), QueryItem(name: "bg", value: "00ff00")]
            let target = try #require(signer.target("mp4", options, of: url, expires: 5_000))
            let asked = try RouteParser(mounts: [:]).parse(target)
            #expect(asked.source == url && code(target) == "ok", "\(target)")
        }
        #expect(signer.target("mp4", [QueryItem(name: "bg", value: "0\nquality=9")], of: nil) == nil)
    }

    @Test func differentRequestsHaveDifferentTexts() {
        let pairs: [[QueryItem]] = [
            [QueryItem(name: "a", value: "1,b=2")], [QueryItem(name: "a", value: "1"), QueryItem(name: "b", value: "2")],
            [QueryItem(name: "a=1,b", value: "2")], [QueryItem(name: "a", value: "1\nhttps://evil.test/")],
        ]
        let texts = pairs.compactMap { SignedText("mp4", options: $0, source: "https://a.test/")?.text }
        #expect(texts == ["mp4\na=1,,b=2\nhttps://a.test/", "mp4\na=1,b=2\nhttps://a.test/"])
    }

    @Test func noDescriptionContainsAKey() {
        let keys = SigningKeys([Self.key])
        #expect(!"\(keys)".contains("example") && !String(reflecting: keys).contains("example"))
    }
}

@Suite("base64url without padding") struct Base64URLTests {
    /// RFC 4648 section 10, less the padding.
    @Test(arguments: [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")])
    func encodesAsTheStandardHasIt(text: String, encoded: String) {
        #expect(Base64URL.encode(text.utf8) == encoded)
        #expect(Base64URL.decode(encoded) == Array(text.utf8))
    }

    @Test(arguments: ["Zg==", "Zh", "Z", "Zm9v\n", "Zm+v", "Zm/v", "Zm 9v", "é"]) func refusesEveryOtherText(_ text: String) {
        #expect(Base64URL.decode(text) == nil)
    }

    @Test func base64UsesTheAlphabetForURLs() {
        #expect(Base64URL.encode([0xfb, 0xef, 0xff]) == "--__" && Base64URL.decode("--__") == [0xfb, 0xef, 0xff])
    }
}
