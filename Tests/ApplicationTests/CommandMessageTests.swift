import Foundation
import TestSupport
import Testing

@Suite("Commands say which argument is wrong, and what to give instead", .serialized, .timeLimit(.minutes(10)))
struct CommandMessageTests {
    /// A run of a command with wrong arguments.
    struct Mistake: Sendable, CustomTestStringConvertible {
        let arguments: [String]
        let code: Int32
        /// A part of standard error.
        let message: String

        init(_ arguments: String, _ code: Int32, _ message: String) {
            // “''” stands for an empty argument.
            self.arguments = arguments.split(separator: " ").map { $0 == "''" ? "" : String($0) }
            self.code = code
            self.message = message
        }

        var testDescription: String { arguments.joined(separator: " ") }
    }

    /// Runs the command in a directory with a GIF, a page with a relative link and a list.
    private func outcome(_ mistake: Mistake, keys: String? = nil) throws -> ChildProcess.Outcome {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        try Data(GIFBuilder.animation(frames: 2)).write(to: directory.appendingPathComponent("a.gif"))
        try Data("<html><img src=a.gif>".utf8).write(to: directory.appendingPathComponent("page.html"))
        try Data("https://a.test/a.gif\n".utf8).write(to: directory.appendingPathComponent("list"))
        return try ChildProcess(
            URL(fileURLWithPath: "/usr/bin/env"),
            ["-C", directory.path, GifreelProcess.executable.path] + mistake.arguments,
            environment: ["XDG_STATE_HOME": directory.path, "PATH": "/usr/bin"]
                .merging(keys.map { ["GIFREEL_SIGNING_KEYS": $0] } ?? [:]) { $1 }
        ).finish()
    }

    @Test(arguments: [
        Mistake("convert a.gif", 64, "Given without --to: a.gif."),
        Mistake("convert a.gif b.gif c.mp4", 64, "Given without --to: a.gif, b.gif, c.mp4."),
        Mistake("convert 1.gif 2.gif 3.gif 4.gif 5.gif", 64, "Given without --to: 1.gif, 2.gif, 3.gif and 2 more."),
        Mistake("convert", 64, "Give IN and OUT, such as a.gif a.mp4, or --to DIR"),
        Mistake("convert --to out", 64, "Give IN and OUT, such as a.gif a.mp4, or --to DIR"),
        Mistake("convert a.gif out", 1, "The name “out” has no extension; give --format with one of mp4, "),
        Mistake("convert a.gif out.avi", 1, "There is no format “avi” to convert to; give one of mp4, "),
        Mistake("convert a.gif a.gif --format mp4", 64, "gifreel: a.gif is the input itself"),
        Mistake("convert --to out -", 64, "gifreel: Standard input has no name"),
        Mistake("convert a.gif a.mp4 --width 1", 1, "The option “width” must be a whole number from 2 to 4096."),
        Mistake("convert a.gif a.mp4 --start 2 --end 1", 1, "The option “end” must be later than the start."),
        Mistake("frames list frames", 1, "list: The file is not an animation or a video."),
        Mistake("frames - frames", 1, "standard input: The file is not an animation or a video."),
    ])
    func filesOfConvertAndFrames(_ mistake: Mistake) throws {
        let outcome = try outcome(mistake)
        #expect(outcome.code == mistake.code && outcome.log.contains(mistake.message), "\(outcome)")
    }

    @Test(arguments: [
        Mistake("purg --all", 64, "gifreel: There is no command purg. Did you mean purge?\n"),
        Mistake("transcode a.gif", 64, "gifreel: There is no command transcode.\n"),
        Mistake("convert a.gif a.mp4 --widht 3", 64, "gifreel: convert has no option --widht. Did you mean --width?\n"),
        Mistake("serve --chek", 64, "gifreel: serve has no option --chek. Did you mean --check?\n"),
        Mistake(
            "store prune --concurency=3", 64, "gifreel: store has no option --concurency. Did you mean --concurrency?\n"),
        Mistake("purge --quite-another", 64, "gifreel: purge has no option --quite-another.\n"),
        Mistake("convert a.gif --width", 64, "Error: "), Mistake("--chek", 64, "Error: Unknown option '--chek'"),
    ])
    func namesThatDoNotExist(_ mistake: Mistake) throws {
        let outcome = try outcome(mistake)
        let isSame =
            mistake.message.hasSuffix("\n") ? outcome.log == mistake.message : outcome.log.hasPrefix(mistake.message)
        #expect(outcome.code == mistake.code && isSame, "\(outcome)")
    }

    @Test(arguments: [
        Mistake("purge --all", 1, "needs its admin token; set GIFREEL_ADMIN_TOKEN or give --token."),
        Mistake("purge --all --token ''", 1, "needs its admin token"),
        Mistake("purge --all --server localhost:8080", 64, "--server is “localhost:8080”; it must be an http or https URL"),
        Mistake("prewarm list --server http://127.0.0.1:1", 1, "needs its admin token"),
        Mistake("prewarm --list-jobs", 1, "needs its admin token"),
        Mistake("prewarm list --list-jobs", 64, "--list-jobs takes no lists."),
        Mistake("prewarm list --server ftp://a.test", 64, "--server is “ftp://a.test”; it must be an http or https URL"),
        Mistake("prewarm list --server http://127.0.0.1:1 --set a=b", 64, "cannot be combined with --server"),
        Mistake(
            "prewarm list --server http://127.0.0.1:1 --token a", 1, "http://127.0.0.1:1 cannot be used: Failed to connect"),
    ])
    func theServerThatACommandDrives(_ mistake: Mistake) throws {
        let outcome = try outcome(mistake)
        #expect(outcome.code == mistake.code && outcome.log.contains(mistake.message), "\(outcome)")
    }

    @Test(arguments: [
        Mistake(
            "prewarm a.gif --dry-run", 64, "a.gif: The list is not UTF-8 text; give lines, NDJSON, a sitemap or an HTML page."),
        Mistake("prewarm missing", 64, "The list missing cannot be read: No such file or directory."),
        Mistake("prewarm list --list csv", 64, "Please provide one of 'lines', 'ndjson', 'sitemap' or 'html'."),
        Mistake("prewarm list --format avi", 64, "There is no format “avi”; give one of mp4, "),
        Mistake("prewarm list --option =3", 64, "--option =3 is not of the form name=value."),
        Mistake("prewarm page.html --dry-run", 64, "Relative links of HTML pages need --base."),
        Mistake("prewarm page.html --base a.test", 64, "--base is “a.test”; it must be an http or https URL"),
        Mistake("rewrite page.html --base a.test", 64, "--base is “a.test”; it must be an http or https URL"),
        Mistake("prewarm list --report no/report.csv", 64, "the directory no does not exist"),
        Mistake("prewarm list --concurrency 0", 64, "--concurrency must be from 1 to 1024."),
        Mistake("prewarm list --option width=1 --dry-run", 1, "Renditions: 1. Cannot be made: 1."),
    ])
    func theListsAndPagesOfPrewarmAndRewrite(_ mistake: Mistake) throws {
        let outcome = try outcome(mistake)
        #expect(outcome.code == mistake.code && outcome.log.contains(mistake.message), "\(outcome)")
    }

    @Test(arguments: [
        Mistake("sign", 64, "Give the URL of a source, or --upload."),
        Mistake("sign a.test/a.gif", 1, "The source URL must begin with http:// or https://."),
        Mistake("sign http://a.test/a.gif --format avi", 1, "There is no format “avi”; give one of mp4, "),
        Mistake("sign http://a.test/a.gif quality", 1, "“quality” is not an option of the form name=value."),
        Mistake("sign http://a.test/a.gif ''", 1, "“” is not an option of the form name=value."),
        Mistake("sign http://a.test/a.gif quality=101", 1, "The option “quality” must be a whole number from 1 to 100."),
        Mistake("sign http://a.test/a.gif quality=80 quality=90", 1, "The option “quality” is given twice."),
        Mistake("sign http://a.test/a.gif expires=1", 1, "expires and sig cannot be given as options; use --expires."),
        Mistake("sign http://a.test/a.gif --expires 1x", 1, "--expires is “1x”; it must be a time from now, such as 1h"),
        Mistake("sign --upload http://a.test/a.gif", 1, "“http://a.test/a.gif” is not an option of the form name=value."),
    ])
    func theWordsOfSign(_ mistake: Mistake) throws {
        let outcome = try outcome(mistake, keys: "key")
        #expect(outcome.code == mistake.code && outcome.log.contains(mistake.message), "\(outcome)")
    }

    @Test func signNamesTheMissingKey() throws {
        let outcome = try outcome(Mistake("sign http://a.test/a.gif", 1, ""))
        #expect(outcome.code == 1 && outcome.log.contains("signing.keys holds no key to sign with"), "\(outcome)")
    }

    /// False in a directory that chroot(2) has made the root, too: its mount cannot be changed.
    private static var mayUnmount: Bool {
        (try? ChildProcess(URL(fileURLWithPath: "/usr/bin/unshare"), ["--mount", "true"]).finish().code) == 0
    }

    /// The runtime of Swift finds the arguments neither there nor after a preloaded library has set a variable.
    @Test(.enabled(if: mayUnmount, "needs the right to change mounts"))
    func argumentsAreKnownWithoutProc() throws {
        let command = "umount -l /proc && exec '\(GifreelProcess.executable.path)' sign --help"
        let outcome = try ChildProcess(
            URL(fileURLWithPath: "/usr/bin/unshare"), ["--mount", "/bin/sh", "-c", command]
        ).finish()
        #expect(outcome.code == 0 && outcome.output.contains("USAGE: gifreel sign "), "\(outcome)")
    }
}
