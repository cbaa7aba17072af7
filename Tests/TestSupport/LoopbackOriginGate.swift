internal import Glibc

/// Delays answers until a test opens it.
package final class LoopbackGate: Sendable {
    private let reading: Int32
    private let writing: Int32

    package init() throws {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw LoopbackFailure(operation: "pipe", code: errno) }
        (reading, writing) = (ends[0], ends[1])
    }

    deinit {
        close(reading)
        close(writing)
    }

    /// Releases all answers that wait now or later.
    package func open() {
        // Never read, so it stays readable for all waiting threads.
        var byte: UInt8 = 1
        _ = write(writing, &byte, 1)
    }

    package var isOpen: Bool {
        var watched = pollfd(fd: reading, events: Int16(POLLIN), revents: 0)
        return poll(&watched, 1, 0) == 1
    }

    /// Waits until the gate is open, or the other side of `connection` closes. Returns whether it is open.
    func wait(on connection: Int32) -> Bool {
        var watched = [
            pollfd(fd: reading, events: Int16(POLLIN), revents: 0),
            pollfd(fd: connection, events: LoopbackSocket.closing, revents: 0),
        ]
        while poll(&watched, 2, -1) < 0, errno == EINTR {}
        return watched[0].revents != 0
    }
}

/// The error of a system call in a test helper.
package struct LoopbackFailure: Error {
    package let operation: String
    package let code: Int32
}
