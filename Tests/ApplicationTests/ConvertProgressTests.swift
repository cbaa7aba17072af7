import Foundation
import Glibc
import Media
import TestSupport
import Testing

@testable import gifreel

@Suite("Converting a long file shows its progress on a terminal", .timeLimit(.minutes(10))) struct ConvertProgressTests {
    /// A program that writes nothing for a minute while the terminal is open.
    private struct TerminalStaysOpen: Error {
        let output: String
    }

    /// A terminal, and what a program has written to it.
    private final class Terminal {
        private let main: Int32
        let terminal: FileHandle

        init() throws {
            main = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
            // TIOCSPTLCK unlocks the other end, and TIOCGPTN tells its number.
            var (lock, name): (Int32, UInt32) = (0, 0)
            try #require(main >= 0 && ioctl(main, 0x4004_5431, &lock) == 0 && ioctl(main, 0x8004_5430, &name) == 0)
            let number = open("/dev/pts/\(name)", O_RDWR | O_NOCTTY | O_CLOEXEC)
            try #require(number >= 0)
            terminal = FileHandle(fileDescriptor: number, closeOnDealloc: false)
        }

        deinit {
            close(main)
        }

        /// Reads until no program has the terminal open. A program that writes waits for that.
        func readToEnd() throws -> String {
            close(terminal.fileDescriptor)
            var text: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 4096)
            var watched = pollfd(fd: main, events: Int16(POLLIN), revents: 0)
            // A minute without output is a program that hangs.
            while poll(&watched, 1, 60_000) == 1 {
                // The last close makes this fail.
                let count = read(main, &buffer, buffer.count)
                if count <= 0 { return String(decoding: text, as: UTF8.self) }
                text += buffer[..<count]
            }
            throw TerminalStaysOpen(output: String(decoding: text, as: UTF8.self))
        }
    }

    /// Standard error of `gifreel convert` on a terminal. The GIF ends a second after the program has begun to read it, so that
    /// the conversion takes longer than that on any machine.
    private func shown(_ gif: [UInt8]) throws -> String {
        let folder = try ScratchDirectory()
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
        defer { close(ends[0]) }
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let terminal = try Terminal()
        let process = Process()
        process.executableURL = GifreelProcess.executable
        process.arguments = ["convert", "-", folder.path("out.mp4")]
        process.standardInput = FileHandle(fileDescriptor: ends[1], closeOnDealloc: true)
        process.standardError = terminal.terminal
        try process.start()
        defer { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }
        // The socket does not hold so many bytes: when they are sent, the program has read some.
        try send(gif.dropLast(), to: ends[0])
        let began = ContinuousClock.now
        try blockUntil("a second") { began.duration(to: .now) >= .seconds(1) }
        try send(gif.suffix(1), to: ends[0])
        try #require(shutdown(ends[0], Int32(SHUT_WR)) == 0)
        let text = try terminal.readToEnd()
        try blockUntil("the end of gifreel") { !process.isRunning }
        #expect(process.terminationStatus == 0 && folder.names().contains("out.mp4"), "\(text)")
        return text
    }

    private func send(_ bytes: ArraySlice<UInt8>, to socket: Int32) throws {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            try #require(count > 0, "gifreel has ended, or reads no more")
            rest = rest.dropFirst(count)
        }
    }

    @Test func theFramesAreCountedAndTheLineIsErasedAtTheEnd() throws {
        let text = try shown(GIFBuilder.noise(frames: 200, width: 160, height: 120))
        let lines = text.split(separator: "\r").map(String.init)
        let counts = lines.compactMap { $0.firstMatch(of: /[ ](\d+)\/200 frames/).flatMap { Int($0.1) } }
        #expect(!counts.isEmpty && counts == counts.sorted() && counts.allSatisfy { $0 <= 200 }, "\(text)")
        #expect(lines.contains { $0.contains("█") && $0.contains(" left") })
        #expect(lines.last == "\u{1B}[K")
    }

    @Test func aDirectoryEndsWithASummary() throws {
        let folder = try ScratchDirectory()
        for name in ["a.gif", "b.gif"] {
            try Data(GIFBuilder.noise(frames: 3, width: 64, height: 48)).write(to: URL(fileURLWithPath: folder.path(name)))
        }
        try folder.write("c.gif", "no GIF")
        let terminal = try Terminal()
        let process = Process()
        process.executableURL = GifreelProcess.executable
        process.arguments = ["convert", "--to", folder.path("out")] + ["a.gif", "b.gif", "c.gif"].map { folder.path($0) }
        process.standardError = terminal.terminal
        try process.start()
        defer { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }
        let text = try terminal.readToEnd()
        try blockUntil("the end of gifreel") { !process.isRunning }
        let summary = text.split(whereSeparator: \.isNewline).last.map(String.init) ?? ""
        let expected = /\u{1B}\[K2 of 3 files in \d+\.\d s: [\d.]+ kB became [\d.]+ k?B \(\d+ %\); 1 failed$/
        #expect(summary.contains(expected), "\(text)")
        #expect(process.terminationStatus == 1 && folder.names(in: "out") == ["a.mp4", "b.mp4"])
    }

    @Test func theBarAppearsAfterASecond() {
        let began = ContinuousClock.now
        let bar = FrameBar(since: began)
        #expect(bar.drawing(FrameProgress(done: 10, total: 90), at: began + .milliseconds(999)) == nil)
        #expect(bar.erasure() == nil)
        let text = bar.drawing(FrameProgress(done: 50, total: 90), at: began + .milliseconds(1999), columns: 80)
        #expect(text?.hasSuffix(" 50/90 frames  0:01 left\u{1B}[K") == true && text?.hasPrefix("\r█") == true)
        // The next line does not replace a line that the terminal has wrapped.
        let narrow = bar.drawing(FrameProgress(done: 50, total: 90), at: began + .milliseconds(1999), columns: 40)
        #expect(narrow?.hasSuffix("░ 50/90 fr\u{1B}[K") == true, "\(narrow ?? "")")
        #expect(bar.erasure() == "\r\u{1B}[K" && bar.erasure() == nil)
    }

    @Test func theLineHasABarTheFramesAndTheTimeLeft() {
        #expect(
            FrameBar.line(FrameProgress(done: 60, total: 120), since: 20, elapsed: .seconds(4))
                == String(repeating: "█", count: 15) + String(repeating: "░", count: 15) + " 60/120 frames  0:06 left")
        #expect(FrameBar.line(FrameProgress(done: 0, total: 5), since: 0, elapsed: .zero).hasSuffix("░ 0/5 frames"))
        #expect(
            FrameBar.line(FrameProgress(done: 5, total: 5), since: 1, elapsed: .seconds(1)).hasSuffix(" 5/5 frames  0:00 left"))
    }
}
