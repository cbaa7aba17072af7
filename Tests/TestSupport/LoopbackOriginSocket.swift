internal import Glibc

/// A connection of a ``LoopbackOrigin``, served by blocking calls.
struct LoopbackSocket {
    private let number: Int32
    private var buffer: [UInt8] = []

    init(_ number: Int32) {
        self.number = number
    }

    /// The events that `poll` reports for a connection that the other side, or ``LoopbackOrigin/stop()``, has closed.
    static let closing = Int16(POLLIN) | Int16(0x2000)  // POLLRDHUP, which Glibc's module lacks.

    /// A listening socket on a free port of 127.0.0.1.
    static func listen() throws -> (socket: Int32, port: Int) {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { throw LoopbackFailure(operation: "socket", code: errno) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(number, address, length) == 0 && Glibc.listen(number, 1024) == 0
                    && getsockname(number, address, &length) == 0
            }
        }
        guard isListening else {
            let code = errno
            close(number)
            throw LoopbackFailure(operation: "listen", code: code)
        }
        return (number, Int(UInt16(bigEndian: address.sin_port)))
    }

    /// Reads the next request's head without its empty line; nil at the end of the connection.
    mutating func readHead() -> String? {
        let end = Array("\r\n\r\n".utf8)
        while true {
            if let range = buffer.firstRange(of: end) {
                let head = String(decoding: buffer[..<range.lowerBound], as: UTF8.self)
                buffer.removeSubrange(..<range.upperBound)
                return head
            }
            guard receive() else { return nil }
        }
    }

    /// Reads a body of a known length; nil if the connection ends before.
    mutating func readBody(_ length: Int) -> [UInt8]? {
        while buffer.count < length {
            guard receive() else { return nil }
        }
        defer { buffer.removeFirst(length) }
        return Array(buffer.prefix(length))
    }

    /// Receives more bytes; false at the end of the connection.
    private mutating func receive() -> Bool {
        var piece = [UInt8](repeating: 0, count: 4096)
        let count = recv(number, &piece, piece.count, 0)
        if count > 0 { buffer += piece.prefix(count) }
        return count > 0
    }

    /// Performs the steps; false if the connection ended meanwhile.
    func play(_ steps: [LoopbackAnswer.Step]) -> Bool {
        steps.allSatisfy(play)
    }

    private func play(_ step: LoopbackAnswer.Step) -> Bool {
        switch step {
        case .send(let bytes):
            return send(bytes)
        case .sendForever(let bytes):
            while send(bytes) {}
            return false
        case .trickle(let bytes, let interval):
            return bytes.allSatisfy { send([$0]) && pause(interval) }
        case .hang:
            _ = pause(nil)
            return false
        case .wait(let gate):
            return gate.wait(on: number)
        case .open(let gate):
            gate.open()
            return true
        case .pause(let duration):
            return pause(duration)
        case .reset:
            var lingering = linger(l_onoff: 1, l_linger: 0)
            setsockopt(number, SOL_SOCKET, SO_LINGER, &lingering, socklen_t(MemoryLayout<linger>.size))
            return false
        }
    }

    private func send(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while let base = UnsafeRawBufferPointer(rebasing: rest).baseAddress, !rest.isEmpty {
                let count = Glibc.send(number, base, rest.count, Int32(MSG_NOSIGNAL))
                if count < 0, errno == EINTR { continue }
                if count <= 0 { return false }
                rest = rest.dropFirst(count)
            }
            return true
        }
    }

    /// Waits for `duration`, or without limit; false if the connection ended meanwhile.
    private func pause(_ duration: Duration?) -> Bool {
        var watched = pollfd(fd: number, events: Self.closing, revents: 0)
        let milliseconds = duration.map { Int32($0 / .milliseconds(1)) } ?? -1
        var result = poll(&watched, 1, milliseconds)
        while result < 0, errno == EINTR { result = poll(&watched, 1, milliseconds) }
        return result == 0
    }
}
