import CLinux
import Glibc
import SystemIO
import TestSupport
import Testing

@Suite("Reads and writes continue until everything is transferred", .timeLimit(.minutes(10))) struct DescriptorIOTests {
    private func memory() throws -> OwnedDescriptor {
        OwnedDescriptor(taking: clinux_memfd_create("test"))
    }

    @Test func positionedWritesAndReadsDoNotMoveTheOffset() throws {
        let file = try memory()
        try DescriptorIO.write([3, 4, 5], to: file.number, at: 2)
        try DescriptorIO.write([1, 2], to: file.number, at: 0)
        #expect(lseek(file.number, 0, SEEK_CUR) == 0)
        #expect(try DescriptorIO.read(10, from: file.number, at: 0) == [1, 2, 3, 4, 5])
        #expect(try DescriptorIO.read(2, from: file.number, at: 1) == [2, 3])
        #expect(try DescriptorIO.read(2, from: file.number, at: 5) == [])
        #expect(try DescriptorIO.read(0, from: file.number, at: 0) == [])
        try DescriptorIO.write([], to: file.number, at: 0)
        #expect(lseek(file.number, 0, SEEK_CUR) == 0)
    }

    @Test func aWriteBeyondTheEndLeavesZeros() throws {
        let file = try memory()
        try DescriptorIO.write([9], to: file.number, at: 3)
        #expect(try DescriptorIO.read(10, from: file.number, at: 0) == [0, 0, 0, 9])
    }

    @Test func errorsCarryTheCallAndItsCode() throws {
        let file = try memory()
        #expect(clinux_memfd_seal(file.number) == 0)
        let write = #expect(throws: SystemError.self) { try DescriptorIO.write([1], to: file.number, at: 0) }
        #expect(write == SystemError("pwrite", code: EPERM))
        let read = #expect(throws: SystemError.self) { try DescriptorIO.read(1, from: -1, at: 0) }
        #expect(read == SystemError("pread", code: EBADF))
        let full = OwnedDescriptor(taking: open("/dev/full", O_WRONLY | O_CLOEXEC))
        let append = #expect(throws: SystemError.self) { try DescriptorIO.write([1], to: full.number) }
        #expect(append == SystemError("write", code: ENOSPC))
        #expect(append?.description == "write: No space left on device")
    }

    /// A pipe holds 64 KiB, so both sides have to continue many times.
    @Test(arguments: [false, true]) func aPipeIsReadToItsEnd(isNonBlocking: Bool) throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let reading = OwnedDescriptor(taking: ends[0])
        let writing = ends[1]
        if isNonBlocking { #expect(fcntl(writing, F_SETFL, O_NONBLOCK) == 0) }
        let sent = (0..<1_000_003).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let writer = SystemThread.start(name: "test") {
            try? DescriptorIO.write(sent, to: writing)
            close(writing)
        }
        var received: [UInt8] = []
        try DescriptorIO.readToEnd(of: reading.number) { received += $0 }
        writer?.join()
        #expect(received == sent)
    }

    /// Each piece is written after the one before has been read, so that the reader finds the pipe empty.
    @Test func aNonBlockingPipeThatIsEmptyMeanwhileIsReadToItsEnd() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let reading = OwnedDescriptor(taking: ends[0])
        let writing = ends[1]
        #expect(fcntl(reading.number, F_SETFL, O_NONBLOCK) == 0)
        let sent = (0..<100).map { UInt8($0) }
        let isRead = Semaphore(value: 1)
        let writer = SystemThread.start(name: "test") {
            for piece in sent {
                guard isRead.wait(for: .seconds(60)) else { break }
                try? DescriptorIO.write([piece], to: writing)
            }
            close(writing)
        }
        var received: [UInt8] = []
        try DescriptorIO.readToEnd(of: reading.number) { piece in
            received += piece
            isRead.signal()
        }
        writer?.join()
        #expect(received == sent)
    }

    @Test func anErrorOfTheReceiverEndsTheRead() throws {
        let file = try memory()
        try DescriptorIO.write([1, 2, 3], to: file.number, at: 0)
        var calls = 0
        let error = #expect(throws: SystemError.self) {
            try DescriptorIO.readToEnd(of: file.number) { _ throws(SystemError) in
                calls += 1
                throw SystemError("test", code: EIO)
            }
        }
        #expect(error == SystemError("test", code: EIO))
        #expect(calls == 1)
    }

    @Test func anInterruptedCallIsRepeated() throws {
        var calls = 0
        let result = try retryingOnInterrupt("call") {
            calls += 1
            errno = EINTR
            return calls < 3 ? -1 : 7
        }
        #expect(result == 7)
        #expect(calls == 3)
        let error = #expect(throws: SystemError.self) {
            try retryingOnInterrupt("call") { () -> Int in
                errno = EAGAIN
                return -1
            }
        }
        #expect(error == SystemError("call", code: EAGAIN))
    }
}
