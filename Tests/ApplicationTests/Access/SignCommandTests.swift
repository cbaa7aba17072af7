import Foundation
import TestSupport
import Testing

@Suite("gifreel sign prints signed paths", .timeLimit(.minutes(10))) struct SignCommandTests {
    private let keys = ["GIFREEL_SIGNING_KEYS": "an-example-key-of-at-least-32-bytes,an-old-key-that-still-holds-for-now"]

    @Test func aPathIsPrintedThatIsSignedByTheFirstKey() throws {
        let plain = try GifreelCommandLine.run(["sign", "HTTPS://EXAMPLE.com/a.gif?v=2"], environment: keys)
        #expect(plain.code == 0)
        #expect(plain.output == "/mp4,sig=C1Ga782pRjzHCXQjEwh0YeZDmUsH6bFdbPuOj40Sj7k/https://example.com/a.gif?v=2")
        let more = try GifreelCommandLine.run(
            ["sign", "https://example.com/a.gif?v=2", "quality=80", "--expires", "2000000000"], environment: keys)
        #expect(
            more.output
                == "/mp4,expires=2000000000,quality=80,sig=jGUjKO449NlYUJPjfzSwfP7s5L0Q_Nr9guBiPvozIJc/https://example.com/a.gif?v=2"
        )
        let upload = try GifreelCommandLine.run(["sign", "--upload", "quality=80"], environment: keys)
        #expect(upload.output == "/mp4,quality=80,sig=5npvdJMMoGP8G4UoZuNHoIgjaJx7CszaasvlT0V77OA")
    }

    /// The server answers a signed path of a source that is missing with 404 or 502, and an unsigned one with 403.
    @Test func pathsOfMountsAreSigned() throws {
        let folder = try ScratchDirectory()
        let settings = [
            "mounts.disk.origin=file://\(folder.path)", "mounts.web.origin=http://127.0.0.1:1/in/", "mounts.web.query=forward",
            "mounts.web.headers=X-Key: 1", "mounts.web.negotiate=true",
        ]
        let server = try GifreelProcess(settings + ["signing.keys=an-example-key-of-at-least-32-bytes"])
        let cases: [([String], String)] = [
            (["/disk/a.gif"], "/disk/a.gif?sig="),
            (["/web/a.webp?v=1&width=9", "--expires", "4000000000"], "/web/a.webp?v=1&width=9&expires="),
            (["/web/a.auto", "gravity=0.5:1", "fit=cover", "width=9", "height=9"], "/web/a.auto?gravity=0.5%3A1&"),
            (["file://\(folder.path)/b/caf%e9.gif", "--format", "json"], "/disk/b/caf%E9.json?sig="),
            (["file://\(folder.path)/b/a.gif", "quality=3"], "/disk/b/a.mp4?quality=3&sig="),
        ]
        func sign(_ arguments: [String]) throws -> ChildProcess.Outcome {
            try GifreelCommandLine.run(["sign"] + arguments + settings.flatMap { ["--set", $0] }, environment: keys)
        }
        for (arguments, start) in cases {
            let signed = try sign(arguments)
            #expect(signed.code == 0 && signed.output.hasPrefix(start), "\(signed)")
            let status = try server.request("GET", signed.output).status
            #expect([404, 502].contains(status), "\(signed.output): \(status)")
            #expect(try server.request("GET", signed.output.replacing("sig=", with: "sig=x")).status == 403)
        }
        for (arguments, word) in [
            (["/none/a.gif"], "none"), (["/disk/a.gif", "--format", "jpg"], "--format"), (["/disk/a.gif?sig=1"], "sig"),
            (["/mp4/https://example.com/a.gif"], "No mount"), (["file:///elsewhere/a.gif"], "No mount"),
            (["s3://bucket/a.gif"], "No mount"),
            (["http://127.0.0.1:1/in/a.gif"], "mount"), (["/disk/a.gif", "width=0"], "width"),
        ] {
            let refused = try sign(arguments)
            #expect(refused.code == 1 && refused.output.isEmpty && refused.log.contains(word), "\(refused)")
        }
    }

    @Test func aTimeFromNowIsWrittenAsATime() throws {
        let before = Int(Date().timeIntervalSince1970)
        let path = try GifreelCommandLine.run(["sign", "https://example.com/", "--expires", "1h"], environment: keys).output
        let text = try #require(path.firstRange(of: "expires=").map { path[$0.upperBound...].prefix { $0.isNumber } })
        #expect((before + 3600...before + 3700).contains(try #require(Int(text))))
    }

    @Test func signingErrorsNameTheirCause() throws {
        let cases: [([String], String)] = [
            (["https://example.com/", "quality=0"], "quality"), (["https://example.com/", "sig=1"], "--expires"),
            (["https://example.com/", "--expires", "soon"], "soon"), (["ftp://example.com/"], "http"),
            (["https://example.com/", "--format", "exe"], "exe"),
        ]
        for (arguments, word) in cases {
            let outcome = try GifreelCommandLine.run(["sign"] + arguments, environment: keys)
            #expect(outcome.code == 1 && outcome.output.isEmpty && outcome.log.contains(word), "\(outcome.log)")
        }
        let bare = try GifreelCommandLine.run(["sign", "https://example.com/"], environment: ["GIFREEL_SIGNING_KEYS": ""])
        #expect(bare.code == 1 && bare.log.contains("signing.keys"))
    }

    @Test(arguments: [
        "--upload --format html", "--upload --format auto", "--upload on_miss=queue", "--upload on_larger=problem",
        "--format auto on_miss=queue https://example.com/", "--format auto on_larger=problem https://example.com/",
        "zoom=2 width=10 https://example.com/",
    ])
    func nothingIsSignedThatTheServerRefuses(_ arguments: String) throws {
        let words = arguments.split(separator: " ").map(String.init).sorted {
            $0.hasPrefix("https:") && !$1.hasPrefix("https:")
        }
        let outcome = try GifreelCommandLine.run(["sign"] + words, environment: keys)
        #expect(outcome.code == 1 && outcome.output.isEmpty && outcome.log.hasPrefix("gifreel: "), "\(outcome)")
    }

    @Test func keysAreNeverShown() throws {
        let check = try GifreelCommandLine.run(["serve", "--check"], environment: keys)
        #expect(check.code == 0 && check.output.contains("signing.keys: ***") && !check.output.contains("example-key"))
        let none = try GifreelCommandLine.run(["serve", "--check"])
        #expect(none.code == 0 && none.output.contains("signing.keys: –"))
        // An unset variable of a compose file is empty.
        let empty = try GifreelCommandLine.run(["serve", "--check"], environment: ["GIFREEL_SIGNING_KEYS": ""])
        #expect(empty.code == 1 && empty.log.contains("GIFREEL_SIGNING_KEYS"))
    }
}
