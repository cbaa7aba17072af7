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
            (["https://example.com/", "--format", "html", "title=One, two"], "a comma"),
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
