import Foundation
import Glibc
import TestSupport
import Testing

extension OperationsTests {
    @Suite("gifreel prewarm fills a cache from lists", .timeLimit(.minutes(10))) struct PrewarmCommandTests {
        private let directory = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString)")

        private func start(_ arguments: [String], environment: [String: String] = [:]) throws -> ChildProcess {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            return try ChildProcess(
                GifreelProcess.executable, ["prewarm"] + arguments,
                environment: ["XDG_STATE_HOME": directory.path, "PATH": "/usr/bin"].merging(environment) { $1 })
        }

        private func prewarm(_ arguments: [String]) throws -> ChildProcess.Outcome {
            try start(arguments).finish()
        }

        private func list(_ urls: [String]) throws -> String {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            let file = directory.appendingPathComponent("list")
            try urls.joined(separator: "\n").write(to: file, atomically: true, encoding: .utf8)
            return file.path
        }

        /// - Parameter folder: The cache directory; nil leaves it to the environment.
        private func settings(_ folder: String?) -> [String] {
            let others = ["cache.min_free_bytes=0", "sources.allow_private=127.0.0.1", "sources.ports=1-65535"]
            return (others + (folder.map { ["cache.dir=\($0)"] } ?? [])).flatMap { ["--set", $0] }
        }

        @Test func withoutAServerACacheDirectoryIsFilled() throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let gif = GIFBuilder.animation(frames: 30)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
            defer { origin.stop() }
            let file = try list([origin.url("/a.gif"), origin.url("/a.gif"), origin.url("/no.gif")])
            let report = directory.path + "/report.json"
            let outcome = try prewarm([file, "--report", report] + settings(directory.path + "/cache"))
            #expect(outcome.code == 1)
            #expect(outcome.output.contains("2 of 2 URLs in ") && outcome.output.contains(": 0 hits, 1 new, 1 failed"))
            #expect(outcome.output.contains("source_not_found"))
            #expect(outcome.log.contains("2/2  "))
            let json = try String(contentsOfFile: report, encoding: .utf8)
            #expect(json.contains(#""source_bytes":\#(gif.count)"#) && json.contains(#""code":"source_not_found""#))
            let server = try GifreelProcess(directory: directory)
            #expect(try server.mp4(origin.url("/a.gif"))["cache-status"] == "gifreel; hit")
            let refused = try prewarm([file] + settings(directory.path + "/cache"))
            #expect(refused.code == 1 && refused.log.contains("--server"))
        }

        @Test func aServerPrewarmsAList() throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
            defer { origin.stop() }
            let server = try GifreelProcess(["admin.token=secret"])
            let file = try list([origin.url("/a.gif")])
            let address = "http://127.0.0.1:\(server.port)/"
            let csv = directory.path + "/report.csv"
            let outcome = try prewarm([file, "--server", address, "--token", "secret", "--report", csv])
            #expect(outcome.code == 0 && outcome.output.contains("0 hits, 1 new, 0 failed"), "\(outcome)")
            #expect(try server.mp4(origin.url("/a.gif"))["cache-status"] == "gifreel; hit")
            #expect(try String(contentsOfFile: csv, encoding: .utf8).contains("\(origin.url("/a.gif")),mp4,,new,,,"))
            #expect(try prewarm([file, "--server", address, "--token", "secret"]).output.contains("1 hits, 0 new, 0 failed"))
            let wrong = try prewarm([file, "--server", address, "--token", "wrong"])
            #expect(wrong.code == 1 && wrong.log.contains("does not accept the token"))
        }

        @Test func anInterruptedRunContinuesWhereItStopped() throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let gate = try LoopbackGate()
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin([
                "/a.gif": { _ in .ok(gif) }, "/b.gif": { _ in .status(404) },
                "/c.gif": { $0.number == 1 ? LoopbackAnswer.ok(gif + [0]).after(gate) : .ok(gif + [0]) },
            ])
            defer { origin.stop() }
            let journal = directory.path + "/journal"
            let arguments =
                [try list(["/a.gif", "/b.gif", "/c.gif"].map { origin.url($0) }), "--concurrency", "1", "--journal", journal]
                + settings(directory.path + "/cache")
            let run = try start(arguments)
            try origin.waitForRequests(for: "/c.gif")
            kill(run.identifier, SIGINT)
            let first = try run.finish()
            #expect(first.code == 130 && first.log.contains("continues with the other 1"), "\(first)")
            #expect(first.output.contains("2 of 3 URLs"))
            gate.open()
            let second = try prewarm(arguments)
            #expect(second.code == 1 && second.output.contains("3 of 3 URLs"), "\(second)")
            #expect(second.output.contains("0 hits, 2 new, 1 failed"))
            #expect(origin.count("/a.gif") == 1 && origin.count("/b.gif") == 1)
            #expect(!FileManager.default.fileExists(atPath: journal))
        }

        /// The XDG Base Directory Specification has relative paths ignored.
        @Test func theJournalIsInTheStateDirectoryOfTheUser() throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let origin = try LoopbackOrigin(["/prewarm": { _ in .status(401) }])
            defer { origin.stop() }
            let arguments = [try list(["https://a.test/1.gif"]), "--server", origin.url(""), "--token", "wrong"]
            let (home, own) = (directory.path + "/home", directory.path + "/state")
            for (variable, folder) in [("state", home + "/.local/state"), ("", home + "/.local/state"), (own, own)] {
                let outcome = try start(arguments, environment: ["XDG_STATE_HOME": variable, "HOME": home]).finish()
                let journals = try FileManager.default.contentsOfDirectory(atPath: folder + "/gifreel")
                #expect(outcome.code == 1 && journals.count == 1, "\(variable) \(outcome)")
                try FileManager.default.removeItem(atPath: folder)
            }
        }

        @Test func aSignalEndsTheConversionInProgress() throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            var builder = GIFBuilder(width: 2000, height: 2000)
            for index in 0..<30_000 {
                builder.add(GIFBuilder.Frame(width: 1, height: 1, color: UInt8(2 + index % 3))) { $0.delay = 2 }
            }
            let gif = builder.finish()
            let origin = try LoopbackOrigin(["/long.gif": { _ in .ok(gif) }])
            defer { origin.stop() }
            let limits = ["frames=100000", "total_pixels=1000000000000", "pixels_per_byte=1000000000", "cpu=600s"]
            let run = try start(
                [try list([origin.url("/long.gif")])] + limits.flatMap { ["--set", "limits.\($0)"] }
                    + settings(directory.path + "/cache"))
            try blockUntil("the conversion to begin") { !GifreelProcess.workers(of: run.identifier).isEmpty }
            kill(run.identifier, SIGINT)
            // The conversion would take longer than a run may last.
            let outcome = try run.finish()
            #expect(outcome.code == 130 && outcome.log.contains("continues with the other 1"), "\(outcome)")
        }

        @Test func aSignalEndsItWhileItReadsAList() throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            let pipe = directory.path + "/pipe"
            try #require(mkfifo(pipe, 0o600) == 0)
            let run = try start([pipe] + settings(directory.path + "/cache"))
            var writer: Int32 = -1
            defer { close(writer) }
            try blockUntil("the reader of the list") {
                writer = open(pipe, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
                return writer >= 0
            }
            kill(run.identifier, SIGTERM)
            #expect(try run.finish().code == SIGTERM)
        }

        @Test func aDryRunTouchesNothing() throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let origin = try LoopbackOrigin()
            defer { origin.stop() }
            let file = try list([origin.url("/a.gif"), "nonsense"])
            let outcome = try prewarm([
                file, "--dry-run", "--option", "quality=70", "--set", "cache.dir=\(directory.path)/cache",
            ])
            #expect(outcome.code == 1 && outcome.output == "mp4,quality=70 \(origin.url("/a.gif"))")
            #expect(outcome.log.contains("nonsense: bad_source_url"))
            #expect(origin.requests.isEmpty && !FileManager.default.fileExists(atPath: directory.path + "/cache"))
            let dithered = try prewarm([file, "--dry-run", "--set", "renditions.undither=never"])
            #expect(dithered.output == "mp4,undither=0 \(origin.url("/a.gif"))")
        }

        @Test func aDryRunKnowsTheFilesOfMounts() throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let url = "file://\(directory.path)/a%20b.gif"
            let file = try list([url])
            let mount = ["--set", "mounts.disk.origin=file://\(directory.path)"]
            for arguments in [mount, ["--server", "http://127.0.0.1:1"]] {
                let outcome = try prewarm([file, "--dry-run"] + arguments)
                #expect(outcome.code == 0 && outcome.output == "mp4 \(url)", "\(outcome)")
            }
            #expect(try prewarm([file, "--dry-run"]).code == 1)
        }

        @Test func aRenditionThatDiffersUnderTheSettingsIsMadeToo() throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let file = try list([#"{"url":"https://a.test/1.gif"}"#, #"{"url":"https://a.test/1.gif","undither":"auto"}"#])
            let outcome = try prewarm([file, "--dry-run", "--set", "renditions.undither=never"])
            #expect(outcome.output == "mp4,undither=0 https://a.test/1.gif\nmp4 https://a.test/1.gif", "\(outcome)")
        }

        @Test func aListOfObjectsGetsTheFormatsAndTheOptions() throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let file = try list([
                #"{"url":"https://a.test/1.gif"}"#, #"{"url":"https://a.test/2.gif","format":"png","width":40}"#,
            ])
            let outcome = try prewarm([file, "--dry-run", "--format", "jpg", "--option", "width=100"])
            #expect(
                outcome.output == "jpg,width=100 https://a.test/1.gif\npng,width=40 https://a.test/2.gif", "\(outcome)")
        }

        @Test func aURLOfAListDoesNotReachATerminalAsControlCharacters() throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let outcome = try prewarm([try list(["https://a.test/\u{1B}[2J.gif"])] + settings(directory.path + "/cache"))
            #expect(outcome.code == 1 && !outcome.output.contains("\u{1B}"), "\(outcome)")
            #expect(outcome.output.contains("https://a.test/\u{FFFD}[2J.gif: The source URL contains a control character"))
        }

        @Test func aFormatWithoutAFileIsRefused() throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let outcome = try prewarm([try list(["https://a.test/1.gif"]), "--dry-run", "--format", "html"])
            #expect(outcome.code == 64 && outcome.log.contains("The format “html” needs no conversion"), "\(outcome)")
        }

        @Test func aRenditionThatIsNotStoredIsAFailure() throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif, ["Cache-Control: no-store"]) }])
            defer { origin.stop() }
            let server = try GifreelProcess(["admin.token=secret"])
            let file = try list([origin.url("/a.gif")])
            let remote = ["--server", "http://127.0.0.1:\(server.port)", "--token", "secret"]
            for target in [settings(directory.path + "/cache"), remote] {
                let outcome = try prewarm([file] + target)
                #expect(outcome.code == 1 && outcome.output.contains("0 hits, 0 new, 1 failed"), "\(outcome)")
                #expect(outcome.output.contains("not_stored") && outcome.output.contains("its origin forbids it"))
            }
        }

        @Test func aRunSaysThatTheCacheEvictedRenditions() throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            // Noise that PNG cannot compress, over 100 KB each.
            let paths = (0..<16).map { "/\($0).gif" }
            let handlers = paths.enumerated().map { number, path -> (String, LoopbackOrigin.Handler) in
                let gif = GIFBuilder.noise(frames: 1, width: 600, height: 500 + number)
                return (path, { _ in .ok(gif) })
            }
            let origin = try LoopbackOrigin(Dictionary(uniqueKeysWithValues: handlers))
            defer { origin.stop() }
            let server = try GifreelProcess(["admin.token=secret", "cache.max_bytes=1MiB"])
            let remote = ["--server", "http://127.0.0.1:\(server.port)", "--token", "secret"]
            let local = settings(directory.path + "/cache") + ["--set", "cache.max_bytes=1MiB"]
            for target in [local, remote] {
                func run(_ paths: some Sequence<String>) throws -> ChildProcess.Outcome {
                    try prewarm([try list(paths.map { origin.url($0) }), "--format", "png"] + target)
                }
                let small = try run(paths.prefix(1))
                #expect(small.code == 0 && !small.log.contains("evicted"), "\(small)")
                let large = try run(paths)
                #expect(large.code == 0 && large.log.contains(/the cache evicted [0-9]+ renditions/), "\(large)")
            }
        }

        /// Interrupts a run of two URLs at the second one, and then starts another, which has to make both.
        private func expectAnotherRunStartsAnew(
            _ interrupted: (String) throws -> ChildProcess, _ another: (String) throws -> ChildProcess,
            then body: (LoopbackOrigin, String) throws -> Void = { _, _ in }
        ) throws {
            let gif = GIFBuilder.animation(frames: 3)
            let gate = try LoopbackGate()
            let origin = try LoopbackOrigin([
                "/a.gif": { _ in .ok(gif) },
                "/b.gif": { $0.number == 1 ? LoopbackAnswer.ok(gif + [0]).after(gate) : .ok(gif + [0]) },
            ])
            defer { origin.stop() }
            let file = try list(["/a.gif", "/b.gif"].map { origin.url($0) })
            let run = try interrupted(file)
            try origin.waitForRequests(for: "/b.gif")
            kill(run.identifier, SIGINT)
            #expect(try run.finish().code == 130)
            gate.open()
            let other = try another(file).finish()
            #expect(other.code == 0 && other.output.contains("0 hits, 2 new, 0 failed"), "\(other)")
            #expect(origin.count("/a.gif") == 2)
            try body(origin, file)
        }

        @Test func aRunWithOtherSettingsStartsAnew() throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let arguments = ["--concurrency", "1"] + settings(directory.path + "/cache")
            try expectAnotherRunStartsAnew {
                try start([$0] + arguments)
            } _: {
                try start([$0] + arguments + ["--set", "renditions.undither=never"])
            }
        }

        @Test func aRunOnAnotherCacheDirectoryStartsAnew() throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            func start(_ file: String, _ folder: String) throws -> ChildProcess {
                try self.start(
                    [file, "--concurrency", "1"] + settings(nil), environment: ["GIFREEL_CACHE_DIR": directory.path + folder])
            }
            try expectAnotherRunStartsAnew {
                try start($0, "/first")
            } _: {
                try start($0, "/second")
            } then: { origin, file in
                // The first one continues.
                let rest = try start(file, "/first").finish()
                #expect(rest.code == 0 && rest.output.contains("2 of 2 URLs") && origin.count("/a.gif") == 2, "\(rest)")
            }
        }

        @Test func anIndexOfSitemapsIsFollowed() throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let origin = try LoopbackOrigin()
            defer { origin.stop() }
            let gif = origin.url("/a.gif")
            origin.on("/1.xml", .ok(Array("<urlset><url><loc>\(gif)</loc></url></urlset>".utf8)))
            let file = try list(["<sitemapindex><sitemap><loc>\(origin.url("/1.xml"))</loc></sitemap></sitemapindex>"])
            #expect(try prewarm([file, "--dry-run"]).output == "mp4 \(gif)")
        }

        @Test(arguments: [true, false]) func aSitemapThatCannotBeReadIsAFailure(isOnlyOne: Bool) throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let origin = try LoopbackOrigin()
            defer { origin.stop() }
            origin.on("/1.xml", .ok(Array("<urlset><url><loc>http://a/1.gif</loc></url></urlset>".utf8)))
            let urls = [origin.url("/none.xml")] + (isOnlyOne ? [] : [origin.url("/1.xml")])
            let index = urls.map { "<sitemap><loc>\($0)</loc></sitemap>" }.joined()
            let outcome = try prewarm([list(["<sitemapindex>\(index)</sitemapindex>"]), "--dry-run"])
            #expect(outcome.code == 1 && outcome.output == (isOnlyOne ? "" : "mp4 http://a/1.gif"), "\(outcome)")
            // The list itself is right.
            let log = outcome.log
            #expect(log.contains("/none.xml cannot be read") && !log.contains("name no source"), "\(log)")
        }

        @Test(arguments: [
            ["--concurrency", "0"], ["--nonsense"], ["--list", "csv"], ["--server", "ftp://x"], ["--option", "x"],
            ["/no/such/list"],
            ["/dev/null"], ["--server", "http://127.0.0.1:1", "--set", "cache.dir=x"],
        ])
        func unusableArgumentsExitWithTwo(_ arguments: [String]) throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let outcome = try prewarm(arguments)
            #expect(outcome.code == 64 && !outcome.log.isEmpty)
        }
    }
}
