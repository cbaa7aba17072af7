import Foundation
import Glibc
import TestSupport
import Testing

@Suite("gifreel convert and gifreel frames", .timeLimit(.minutes(10))) struct CommandTests {
    private let directory = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString)")

    private func gifreel(_ arguments: [String], input: [UInt8] = []) throws -> ChildProcess.Outcome {
        try GifreelCommandLine.run(arguments, input: input)
    }

    private func write(_ name: String, _ bytes: [UInt8]) throws -> String {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let file = directory.appendingPathComponent(name)
        try Data(bytes).write(to: file)
        return file.path
    }

    @Test func theSameGIFGivesTheSameBytesWhateverMemoryHeldBefore() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let input = try write("a.gif", GIFBuilder.noise(frames: 24, width: 152, height: 152))
        // glibc fills allocated memory with the complement of this byte, and freed memory with the byte.
        let all = try ["0", "85", "170"].map { fill in
            let output = directory.appendingPathComponent("\(fill).mp4")
            let outcome = try GifreelCommandLine.run(["convert", input, output.path], environment: ["MALLOC_PERTURB_": fill])
            #expect(outcome.code == 0)
            return try Data(contentsOf: output)
        }
        #expect(Set(all).count == 1)
    }

    @Test func aFileBecomesAFile() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let input = try write("a.gif", GIFBuilder.animation(frames: 3))
        let output = directory.appendingPathComponent("a.mp4")
        #expect(try gifreel(["convert", input, output.path]).code == 0)
        #expect(try MP4Boxes([UInt8](Data(contentsOf: output))).durations == [10, 10, 10])
    }

    @Test func standardInputBecomesStandardOutput() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let outcome = try gifreel(["convert", "-", "-", "--quality", "30"], input: GIFBuilder.animation(frames: 3))
        #expect(outcome.code == 0)
        #expect(try MP4Boxes(outcome.bytes).durations == [10, 10, 10])
    }

    @Test func theExtensionOrTheFormatOptionChoosesTheFormat() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let gif = GIFBuilder.animation(frames: 3, width: 40, height: 30)
        let input = try write("a.gif", gif)
        let output = directory.appendingPathComponent("a.PNG")
        #expect(try gifreel(["convert", input, output.path, "--width", "20", "--frame", "1"]).code == 0)
        #expect(try FFmpeg.stream(of: output)["width"] == "20")
        let piped = try gifreel(["convert", "-", "-", "--format", "webp"], input: gif)
        #expect(piped.code == 0 && piped.bytes.starts(with: Array("RIFF".utf8)))
        let facts = try gifreel(["convert", "-", "-", "--format", "json"], input: gif)
        #expect(facts.output.contains("\"delays\":[0.1,0.1,0.1]"))
        let folder = directory.appendingPathComponent("many").path
        #expect(try gifreel(["convert", "--to", folder, "--format", "jpg", input]).code == 0)
        #expect(try Data(contentsOf: URL(fileURLWithPath: folder + "/a.jpg")).starts(with: [0xff, 0xd8]))
    }

    @Test func unknownFormatsAreRefusedWithACode() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let input = try write("a.gif", GIFBuilder.animation())
        let unknown = try gifreel(["convert", input, directory.path + "/a.avi"])
        #expect(unknown.code == 1 && unknown.log.hasPrefix("gifreel: There is no format “avi”"))
        let option = try gifreel(["convert", input, directory.path + "/a.jpg", "--loops", "2"])
        #expect(option.code == 1 && option.log.contains("gifreel: The option “loops” has no effect on jpg."))
    }

    @Test func aFileThatFailsLeavesNothingAndSaysWhy() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let input = try write("a.gif", Array("no gif at all".utf8))
        let outcome = try gifreel(["convert", input, directory.path + "/a.mp4"])
        #expect(outcome.code == 1)
        #expect(outcome.log.contains("not_an_animation: The file is not an animation or a video."))
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).filter { $0.contains("mp4") }.isEmpty)
    }

    @Test func theNameOfAFileDoesNotReachATerminalAsControlCharacters() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        _ = try write("a\u{1B}[2J\nb.gif: converted\u{9B}31m.gif", Array("no gif at all".utf8))
        let outcome = try gifreel(["convert", "--to", directory.path + "/out", directory.path])
        let name = "\(directory.path)/a\u{FFFD}[2J\u{FFFD}b.gif: converted\u{FFFD}31m.gif"
        #expect(outcome.code == 1 && outcome.log == "\(name): not_an_animation: The file is not an animation or a video.\n")
        let missing = try gifreel(["convert", "\u{1B}[2J.gif"])
        #expect(missing.code == 64 && !missing.log.contains("\u{1B}"), "\(missing)")
    }

    @Test func whatIsNoFileIsNotConvertedWithItsDirectory() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        _ = try write("a.gif", GIFBuilder.animation(frames: 2))
        for name in ["b.gif", "c.png"] { try #require(mkfifo("\(directory.path)/\(name)", 0o600) == 0) }
        let outcome = try gifreel(["convert", "--to", directory.path + "/out", directory.path])
        #expect(outcome.code == 0 && outcome.log.isEmpty, "\(outcome)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path + "/out") == ["a.mp4"])
    }

    @Test func aFileThatIsTooLargeIsNotReadIntoMemory() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let input = try write("a.mp4", [])
        try #require(truncate(input, 2 << 30 | 1) == 0)
        let outcome = try gifreel(["convert", input, directory.path + "/b.mp4"])
        #expect(outcome.code == 1 && outcome.log.contains("a.mp4: too_large: The source has more than 2147483648 bytes"))
    }

    @Test func manyFilesGoIntoADirectory() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let inputs =
            try (0..<5).map { try write("\($0).gif", GIFBuilder.animation(frames: $0 + 1)) } + [try write("bad.gif", [1])]
        let outcome = try gifreel(["convert", "--to", directory.path + "/out"] + inputs)
        #expect(outcome.code == 1 && outcome.log.contains("bad.gif: not_an_animation"))
        for index in 0..<5 {
            let bytes = [UInt8](try Data(contentsOf: directory.appendingPathComponent("out/\(index).mp4")))
            #expect(try MP4Boxes(bytes).durations.count == index + 1)
        }
    }

    @Test func aDirectoryAmongTheInputsStandsForTheGIFsBelowIt() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        _ = try write("a.gif", GIFBuilder.animation(frames: 1))
        try FileManager.default.createDirectory(at: directory.appendingPathComponent("in/b"), withIntermediateDirectories: true)
        _ = try write("in/b/c.GIF", GIFBuilder.animation(frames: 2))
        _ = try write("in/d.gif", GIFBuilder.animation(frames: 3))
        _ = try write("in/e.txt", [1])
        let output = directory.appendingPathComponent("new/out")
        let outcome = try gifreel(["convert", "--to", output.path, directory.path + "/in", directory.path + "/a.gif"])
        #expect(outcome.code == 0 && outcome.log.isEmpty)
        for (name, frames) in [("a.mp4", 1), ("b/c.mp4", 2), ("d.mp4", 3)] {
            let bytes = [UInt8](try Data(contentsOf: output.appendingPathComponent(name)))
            #expect(try MP4Boxes(bytes).durations.count == frames)
        }
        #expect(!FileManager.default.fileExists(atPath: output.path + "/e.mp4"))
        let single = try gifreel(["convert", directory.path + "/a.gif", output.path + "/b"])
        #expect(single.code == 0 && FileManager.default.fileExists(atPath: output.path + "/b/a.mp4"))
        let empty = try gifreel(["convert", "--to", directory.path + "/x", output.path])
        #expect(empty.code != 0 && empty.log.contains("\(output.path) holds no animation: no .gif, .apng, .png or .webp."))
        let wrong = try gifreel(["convert", directory.path + "/in", directory.path + "/x.mp4"])
        #expect(wrong.code != 0 && wrong.log.contains("is a directory; give --to DIR"))
    }

    @Test func aLinkToADirectoryStandsForTheGIFsBelowItsTarget() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        try FileManager.default.createDirectory(at: directory.appendingPathComponent("in/b"), withIntermediateDirectories: true)
        _ = try write("in/b/a.gif", GIFBuilder.animation(frames: 1))
        try #require(symlink("in", directory.path + "/link") == 0)
        for (name, link) in [("x", "/link"), ("y", "/link/")] {
            let outcome = try gifreel(["convert", "--to", "\(directory.path)/\(name)", directory.path + link])
            #expect(outcome.code == 0 && outcome.log.isEmpty, "\(outcome)")
            #expect(FileManager.default.fileExists(atPath: "\(directory.path)/\(name)/b/a.mp4"))
        }
    }

    /// Such names come from two systems, one of which decomposes characters.
    @Test func namesThatDifferInBytesAloneDoNotCollide() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let folder = directory.path + "/in"
        for name in ["\u{e9}", "e\u{301}"] {
            try FileManager.default.createDirectory(atPath: "\(folder)/\(name)", withIntermediateDirectories: true)
            _ = try write("in/\(name).gif", GIFBuilder.animation(frames: 1))
            _ = try write("in/\(name)/\(name).gif", GIFBuilder.animation(frames: 1))
        }
        // In the second run, the files exist.
        for _ in 0..<2 {
            let outcome = try gifreel(["convert", "--to", directory.path + "/out", folder])
            #expect(outcome.code == 0 && outcome.log.isEmpty, "\(outcome)")
        }
        let names = try FileManager.default.subpathsOfDirectory(atPath: directory.path + "/out")
        let expected = ["\u{e9}", "e\u{301}"].flatMap { [$0, "\($0).mp4", "\($0)/\($0).mp4"] }
        #expect(Set(names.map { Array($0.utf8) }) == Set(expected.map { Array($0.utf8) }))
    }

    @Test func theInputIsNotOverwritten() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let gif = GIFBuilder.animation(frames: 2)
        let input = try write("a.mp4", gif)
        let outcome = try gifreel(["convert", input, directory.path + "/./a.mp4"])
        #expect(outcome.code != 0 && outcome.log.contains("is the input itself and would be overwritten"))
        #expect([UInt8](try Data(contentsOf: URL(fileURLWithPath: input))) == gif)
    }

    @Test func noOtherInputIsOverwritten() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let gif = GIFBuilder.animation(frames: 2)
        let first = try write("a.gif", gif)
        let second = try write("a.webp", GIFBuilder.animation(frames: 3))
        let before = try Data(contentsOf: URL(fileURLWithPath: second))
        let outcome = try gifreel(["convert", "--to", directory.path + "/.", "--format", "webp", first, second])
        #expect(outcome.code != 0 && outcome.log.contains("is the input \(second) and would be overwritten"), "\(outcome)")
        #expect(try Data(contentsOf: URL(fileURLWithPath: second)) == before)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() == ["a.gif", "a.webp"])
    }

    @Test func anOutputKeepsItsKindAndItsPermissions() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let input = try write("a.gif", GIFBuilder.animation(frames: 3))
        let output = try write("a.mp4", [1])
        try #require(chmod(output, 0o600) == 0)
        #expect(try gifreel(["convert", input, output]).code == 0)
        #expect(try MP4Boxes([UInt8](Data(contentsOf: URL(fileURLWithPath: output)))).durations == [10, 10, 10])
        #expect(try FileManager.default.attributesOfItem(atPath: output)[.posixPermissions] as? Int == 0o600)
        let pipe = directory.appendingPathComponent("pipe.mp4").path
        try #require(mkfifo(pipe, 0o600) == 0)
        let reader = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        try #require(reader >= 0)
        defer { close(reader) }
        #expect(try gifreel(["convert", input, pipe]).code == 0)
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = read(reader, &bytes, bytes.count)
        #expect(try MP4Boxes(Array(bytes.prefix(max(0, count)))).durations == [10, 10, 10])
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).count == 3)
    }

    @Test func aRedirectionGetsTheOutputAfterWhatItHas() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let input = try write("a.gif", GIFBuilder.animation(frames: 3))
        let output = directory.appendingPathComponent("out").path
        for name in ["-", "/dev/stdout", "/proc/self/fd/1"] {
            let script = "printf head >\"$3\"; \"$1\" convert --format mp4 \"$2\" \(name) >>\"$3\"; printf tail >>\"$3\""
            let outcome = try ChildProcess(
                URL(fileURLWithPath: "/bin/sh"), ["-ec", script, "sh", GifreelProcess.executable.path, input, output]
            ).finish()
            #expect(outcome.code == 0, "\(outcome.log)")
            let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: output)))
            #expect(bytes.starts(with: Array("head".utf8)) && bytes.suffix(4).elementsEqual(Array("tail".utf8)), "\(name)")
            #expect(try MP4Boxes(Array(bytes.dropFirst(4).dropLast(4))).durations == [10, 10, 10])
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() == ["a.gif", "out"])
    }

    @Test func twoNamesOfOneFileAreNotBothOutputs() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let inputs = [
            try write("a.gif", GIFBuilder.animation(frames: 2)), try write("b.gif", GIFBuilder.animation(frames: 3)),
        ]
        let first = try write("a.mp4", [1])
        let second = directory.appendingPathComponent("b.mp4").path
        try #require(symlink(first, second) == 0)
        let outcome = try gifreel(["convert", "--to", directory.path] + inputs)
        #expect(outcome.code != 0 && outcome.log.contains("\(first) and \(second) are one file"), "\(outcome.log)")
        #expect(try Data(contentsOf: URL(fileURLWithPath: first)) == Data([1]))
        // Hard links become two files.
        try #require(unlink(second) == 0 && link(first, second) == 0)
        #expect(try gifreel(["convert", "--to", directory.path] + inputs).code == 0)
        #expect(try MP4Boxes([UInt8](Data(contentsOf: URL(fileURLWithPath: first)))).durations.count == 2)
        #expect(try MP4Boxes([UInt8](Data(contentsOf: URL(fileURLWithPath: second)))).durations.count == 3)
    }

    @Test(.enabled(if: geteuid() == 0, "Only root may give a file away.")) func anOutputKeepsItsOwner() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let input = try write("a.gif", GIFBuilder.animation(frames: 2))
        let output = try write("a.mp4", [1])
        try #require(chown(output, 12_345, 23_456) == 0)
        try #require(chmod(output, 0o640) == 0)
        #expect(try gifreel(["convert", input, output]).code == 0)
        let attributes = try FileManager.default.attributesOfItem(atPath: output)
        #expect(attributes[.ownerAccountID] as? Int == 12_345 && attributes[.groupOwnerAccountID] as? Int == 23_456)
        #expect(attributes[.posixPermissions] as? Int == 0o640)
    }

    @Test func anOutputThatCannotBeWrittenIsBlamedItself() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let input = try write("a.gif", GIFBuilder.animation(frames: 2))
        let missing = try gifreel(["convert", input, "/nonexistent/dir/x.mp4"])
        #expect(missing.code == 1)
        #expect(missing.log == "/nonexistent/dir/x.mp4: file_failed: The directory /nonexistent/dir does not exist.\n")
        let file = try gifreel(["convert", "--to", input, input])
        #expect(file.log == "\(input): file_failed: The directory cannot be created: Not a directory.\n")
        let absent = try gifreel(["convert", "/no/such.gif", directory.path + "/a.mp4"])
        #expect(absent.log == "/no/such.gif: file_failed: The file cannot be read: No such file or directory.\n")
    }

    @Test(
        .enabled(if: SmallDisk.isPossible, "needs the right to mount"),
        arguments: ["mp4", "webm", "avif", "awebp", "gif", "png", "json"])
    func aFullFileSystemIsBlamedAndNotTheSource(_ format: String) throws {
        let folder = try ScratchDirectory()
        let input = try write("a.gif", GIFBuilder.noise(frames: 6, width: 160, height: 160))
        defer { try? FileManager.default.removeItem(at: directory) }
        let disk = try #require(SmallDisk(on: folder.path, bytes: 1 << 20))
        defer { disk.unmount() }
        disk.fill()
        let output = folder.path("out")
        let outcome = try gifreel(["convert", input, output, "--format", format])
        #expect(outcome.code == 1, "\(outcome)")
        #expect(outcome.log == "\(output): file_failed: The file cannot be written: No space left on device.\n")
        #expect(folder.names() == ["filler"])
    }

    /// No log has the cause, and no server is there to try again.
    @Test func anInterruptedConversionNamesItsCause() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let input = try write("a.gif", GIFBuilder.noise(frames: 60, width: 300, height: 300))
        let process = try ChildProcess(GifreelProcess.executable, ["convert", input, directory.path + "/a.mp4"])
        try blockUntil("a worker") { !GifreelProcess.workers(of: process.identifier).isEmpty }
        for worker in GifreelProcess.workers(of: process.identifier) { kill(worker, SIGKILL) }
        let outcome = try process.finish()
        #expect(outcome.code == 1, "\(outcome)")
        let start = "\(input): overloaded: The conversion was interrupted: the worker was killed by signal 9 "
        #expect(outcome.log.hasPrefix(start) && !outcome.log.contains("server"), "\(outcome)")
    }

    @Test func filesThatWouldCollideAreBothNamed() throws {
        let outcome = try gifreel(["convert", "--to", "/x", "a/c.gif", "b/c.gif"])
        #expect(outcome.code != 0)
        #expect(outcome.log.contains("a/c.gif and b/c.gif would both be written to /x/c.mp4"))
    }

    @Test func framesReadsStandardInputAndNamesWhatItCannotReadOrWrite() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let gif = GIFBuilder.animation(frames: 2)
        #expect(try gifreel(["frames", "-", directory.path + "/frames"], input: gif).code == 0)
        #expect(FileManager.default.fileExists(atPath: directory.path + "/frames/frame_001.rgba"))
        let missing = try gifreel(["frames", "/no/such.gif", directory.path + "/frames"])
        #expect(missing.code == 1 && missing.log == "gifreel: /no/such.gif cannot be read: No such file or directory.\n")
        let blocked = try gifreel(["frames", "-", "/dev/null/frames"], input: gif)
        #expect(blocked.code == 1 && blocked.log == "gifreel: /dev/null/frames cannot be created: Not a directory.\n")
    }

    @Test func framesOfAClipAreWrittenWithoutMessagesOfLibav() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let input = try write("a.gif", GIFBuilder.animation(frames: 2))
        for format in ["mp4", "webm"] {
            let clip = directory.path + "/a.\(format)"
            #expect(try gifreel(["convert", input, clip]).code == 0)
            let outcome = try gifreel(["frames", clip, directory.path + "/\(format)"])
            #expect(outcome.code == 0 && outcome.log.isEmpty, "\(outcome)")
        }
    }

    @Test func framesOfAStillAVIFAreRefusedAsAStillAndNotAsIncomplete() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let input = try write("a.gif", GIFBuilder.animation(frames: 1))
        let still = directory.path + "/a.avif"
        #expect(try gifreel(["convert", input, still]).code == 0)
        let outcome = try gifreel(["frames", still, directory.path + "/frames"])
        #expect(outcome.code == 1 && outcome.log == "\(still): This AVIF has no animation.\n", "\(outcome)")
    }

    @Test func framesAreWrittenRawWithTheirFacts() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        var builder = GIFBuilder(width: 2, height: 1)
        builder.addLoop(0)
        builder.add(color: 2, delay: 4)
        builder.add(GIFBuilder.Frame(width: 1, height: 1, color: 3)) { ($0.x, $0.delay) = (1, 0) }
        let input = try write("a.gif", builder.finish())
        #expect(try gifreel(["frames", input, directory.path + "/frames"]).code == 0)
        let frame = [UInt8](try Data(contentsOf: directory.appendingPathComponent("frames/frame_001.rgba")))
        #expect(frame == [255, 0, 0, 255, 0, 255, 0, 255])
        let facts = String(decoding: try Data(contentsOf: directory.appendingPathComponent("frames/meta.json")), as: UTF8.self)
        #expect(facts == #"{"delays_cs":[4,0],"delays_ms":[40,0],"format":"gif","height":1,"loop":"infinite","width":2}"#)
    }

    @Test func theDefaultFileHoldsEverySettingAndIsInForce() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let file = root.appendingPathComponent("config/gifreel.yaml").path
        let (with, without) = (try gifreel(["serve", "--check", "--config", file]), try gifreel(["serve", "--check"]))
        func values(_ outcome: ChildProcess.Outcome) -> [Substring] {
            outcome.output.split(separator: "\n").map { $0.prefix(upTo: $0.firstRange(of: "  # ")?.lowerBound ?? $0.endIndex) }
        }
        #expect(with.code == 0 && values(with) == values(without) && !values(with).isEmpty)
        let text = try String(contentsOfFile: file, encoding: .utf8)
        for line in without.output.split(separator: "\n") {
            let name = line.split(separator: ":")[0].split(separator: ".").last ?? ""
            #expect(text.contains("\(name):"), "\(line)")
        }
    }

    @Test func theManualOfSettingsNamesEachCommandThatReadsThem() throws {
        let manual = try gifreel(["settings", "--format", "man"]).output
        let commands = try gifreel(["--help"]).output.matches(of: /(?m)^  ([a-z]+) {3,}/).map { String($0.1) }
        #expect(commands.contains("serve"))
        for command in commands where try gifreel(["help", command]).output.contains("--set <set>") {
            #expect(manual.contains("gifreel \(command)"), "\(command)")
        }
    }

    /// The parser adds a default to the help of an option that has a value without being given.
    @Test func helpNamesADefaultOnce() throws {
        let root = try gifreel(["--help"])
        let commands = root.output.matches(of: /(?m)^  ([a-z]+) {3,}/).map { String($0.1) }
        #expect(commands.count >= 11)
        for command in commands {
            let help = try gifreel(["help", command]).output
            // A new option begins with two spaces.
            let options = help.replacing(/\n {3,}/, with: " ").split(separator: "\n")
            for option in options where option.contains("(default: ") {
                #expect(!option.contains("Default") && !option.contains("(default)"), "\(command): \(option)")
            }
        }
    }

    @Test func shellsCompleteTheNamesOfFiles() throws {
        let script = try gifreel(["--generate-completion-script", "zsh"]).output
        let lines = script.split(separator: "\n").filter { line in
            ["*:files:", "*:sources:", ":file:", ":config:", ":journal:", ":report:"].contains { line.contains($0) }
        }
        #expect(lines.count >= 10)
        for line in lines { #expect(line.contains("_files"), "\(line)") }
    }

    @Test func secretsAreNotShown() throws {
        let outcome = try gifreel(["serve", "--check", "--set", "admin.token=hunter2"])
        #expect(outcome.code == 0 && !outcome.output.contains("hunter2"))
    }
}
