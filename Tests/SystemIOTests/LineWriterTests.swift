import Glibc
import SystemIO
import TestSupport
import Testing

/// A pipe whose ends are closed with it.
private final class Pipe {
    let readEnd: Int32
    let writeEnd: Int32

    init() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        (readEnd, writeEnd) = (ends[0], ends[1])
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    /// The next bytes, up to `count`; fewer at the end, or if none come for ten seconds.
    func read(count: Int) -> String {
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while text.count < count {
            var interest = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
            guard poll(&interest, 1, 10_000) == 1 else { break }
            let read = Glibc.read(readEnd, &buffer, min(buffer.count, count - text.count))
            guard read > 0 else { break }
            text += buffer[..<read]
        }
        return String(decoding: text, as: UTF8.self)
    }
}

extension Pipe {
    /// The next line without its line feed; empty if none comes for ten seconds.
    fileprivate func readLine() -> String {
        var line = ""
        while true {
            let character = read(count: 1)
            if character.isEmpty || character == "\n" { return line }
            line += character
        }
    }
}

@Suite("Lines are written by a thread of their own, or dropped and counted") struct LineWriterTests {
    private func writer(_ descriptor: Int32, capacity: Int = 1 << 20) throws -> LineWriter {
        try LineWriter(duplicating: descriptor, capacity: capacity, name: "test-log") { Array("missing \($0)\n".utf8) }
    }

    @Test func aDescriptorThatCannotBeWrittenIsRefused() throws {
        let pipe = try Pipe()
        #expect(throws: SystemError("write", code: EBADF)) { _ = try writer(pipe.readEnd) }
    }

    @Test func linesArriveInOrder() throws {
        let pipe = try Pipe()
        let writer = try writer(pipe.writeEnd)
        let lines = (0..<2000).map { "line \($0)\n" }
        for line in lines { writer.append(Array(line.utf8)) }
        let expected = lines.joined()
        #expect(pipe.read(count: expected.utf8.count) == expected)
        #expect(writer.close(within: .seconds(10)))
        #expect(writer.droppedLines == 0)
    }

    @Test func closingWritesWhatIsQueued() throws {
        let pipe = try Pipe()
        let writer = try writer(pipe.writeEnd)
        writer.append(Array("a\nb\n".utf8))
        #expect(writer.close(within: .seconds(10)))
        #expect(pipe.read(count: 4) == "a\nb\n")
        writer.append(Array("c\n".utf8))
        #expect(writer.droppedLines == 1)
        #expect(writer.close(within: .seconds(10)))
    }

    @Test func aFullDiskLosesLinesAndCountsThem() throws {
        let full = open("/dev/full", O_WRONLY | O_CLOEXEC)
        defer { close(full) }
        let writer = try writer(full)
        writer.append(Array("a\nb\n".utf8))
        writer.append(Array("c\n".utf8))
        #expect(writer.close(within: .seconds(10)))
        #expect(writer.droppedLines == 3)
    }

    @Test func aClosedPipeLosesLinesAndCountsThem() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        close(ends[0])
        defer { close(ends[1]) }
        let writer = try writer(ends[1])
        writer.append(Array("a\n".utf8))
        #expect(writer.close(within: .seconds(10)))
        #expect(writer.droppedLines == 1)
    }

    @Test func theNextLineThatIsWrittenTellsHowManyAreMissing() throws {
        let pipe = try Pipe()
        let number = open("/dev/full", O_WRONLY | O_CLOEXEC)
        let writer = LineWriter(SharedDescriptor(OwnedDescriptor(taking: number)), name: "test-log") {
            Array("missing \($0)\n".utf8)
        }
        writer.append(Array("a\nb\n".utf8))
        try blockUntil("two dropped lines") { writer.droppedLines == 2 }
        // The same descriptor now leads to a pipe, like a disk that has free space again.
        #expect(dup2(pipe.writeEnd, number) == number)
        writer.append(Array("c\n".utf8))
        #expect(pipe.read(count: 12) == "missing 2\nc\n")
        #expect(writer.close(within: .seconds(10)))
        #expect(writer.droppedLines == 2)
    }

    @Test func linesThatFillTheQueueExactlyAreKept() throws {
        let pipe = try Pipe()
        let writer = try writer(pipe.writeEnd, capacity: 4)
        writer.append(Array("abc\n".utf8))
        #expect(pipe.read(count: 4) == "abc\n")
        writer.append(Array("abcd\n".utf8))
        #expect(writer.droppedLines == 1)
        writer.append([])
        writer.append(Array("x\n".utf8))
        #expect(pipe.read(count: 12) == "x\nmissing 1\n")
        #expect(writer.close(within: .seconds(10)))
    }

    @Test func lineThatWasCutOffIsEndedBeforeTheNextOne() throws {
        var ends: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        let number = ends[0]
        let writer = LineWriter(
            SharedDescriptor(OwnedDescriptor(taking: number)), capacity: 4 << 20, name: "test-log"
        ) {
            Array("missing \($0)\n".utf8)
        }
        writer.append([UInt8](repeating: UInt8(ascii: "x"), count: 2 << 20) + [UInt8(ascii: "\n")])
        // The reader leaves in the middle of the line.
        var buffer = [UInt8](repeating: 0, count: 1000)
        #expect(read(ends[1], &buffer, buffer.count) > 0)
        close(ends[1])
        try blockUntil("the line to be lost") { writer.droppedLines == 1 }
        let pipe = try Pipe()
        #expect(dup2(pipe.writeEnd, number) == number)
        writer.append(Array("c\n".utf8))
        #expect(pipe.read(count: 13) == "\nmissing 1\nc\n")
        #expect(writer.close(within: .seconds(10)))
    }

    @Test func aStalledReaderBlocksNoCaller() throws {
        let pipe = try Pipe()
        let writer = try writer(pipe.writeEnd, capacity: 100_000)
        // The queue alone holds more than the pipe.
        let line = Array((String(repeating: "x", count: 99) + "\n").utf8)
        let start = ContinuousClock.now
        for _ in 0..<5000 { writer.append(line) }
        #expect(ContinuousClock.now - start < .seconds(5))
        #expect(writer.droppedLines > 1000)
        #expect(!writer.close(within: .milliseconds(50)))
        var (written, missing) = (0, 0)
        while written + missing < 5000 {
            let line = pipe.readLine()
            if let count = line.hasPrefix("missing ") ? Int(line.dropFirst(8)) : nil {
                missing += count
            } else {
                try #require(line.utf8.count == 99)
                written += 1
            }
        }
        #expect(missing == writer.droppedLines)
        #expect(writer.close(within: .seconds(10)))
    }

    @Test func aNonBlockingDescriptorIsWaitedFor() throws {
        let pipe = try Pipe()
        #expect(fcntl(pipe.writeEnd, F_SETFL, O_NONBLOCK) == 0)
        let writer = try writer(pipe.writeEnd)
        let text = String(repeating: String(repeating: "x", count: 999) + "\n", count: 500)
        writer.append(Array(text.utf8))
        #expect(pipe.read(count: text.utf8.count) == text)
        #expect(writer.close(within: .seconds(10)))
        #expect(writer.droppedLines == 0)
    }

    @Test func aLineLongerThanAPipesAtomicWriteIsWrittenWhole() throws {
        let pipe = try Pipe()
        let writer = try writer(pipe.writeEnd)
        let text = "a\n" + String(repeating: "y", count: 10_000) + "\nb\n"
        writer.append(Array(text.utf8))
        #expect(pipe.read(count: text.utf8.count) == text)
        #expect(writer.close(within: .seconds(10)))
    }
}
