import CLinux
import Glibc
import SystemIO

@testable import HTTP

/// A client that sends exact bytes over a blocking socket with a timeout. Tests use it on threads of their own (see
/// ``onThread(_:)``), because the engine's tasks need the cooperative pool.
final class RawClient {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// A final answer, with its interim ones before it.
    struct Response {
        var interim: [Int] = []
        var status = 0
        var fields: [(name: String, value: String)] = []
        var body: [UInt8] = []

        subscript(_ name: String) -> String? { fields.first { $0.name.lowercased() == name.lowercased() }?.value }

        var text: String { String(decoding: body, as: UTF8.self) }
    }

    let descriptor: Int32
    private var buffer: [UInt8] = []

    /// Whether this machine has the loopback address of IPv6.
    static let hasIPv6: Bool = {
        let number = socket(AF_INET6, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { return false }
        defer { close(number) }
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_addr = in6addr_loopback
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(number, $0, socklen_t(MemoryLayout<sockaddr_in6>.size)) == 0
            }
        }
    }()

    /// Connects to a loopback port, IPv4 or IPv6. Reads give up after `timeout` seconds.
    ///
    /// - Parameter source: The client's IPv4 address; nil for the usual one.
    init(
        port: Int, ipv6: Bool = false, from source: UInt32? = nil, timeout: Int = 30, receiveBuffer: Int32? = nil
    ) throws {
        descriptor = socket(ipv6 ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if var receiveBuffer {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, socklen_t(MemoryLayout<Int32>.size))
        }
        setDeadline(seconds: timeout)
        let connected: Int32
        if ipv6 {
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = in_port_t(port).bigEndian
            address.sin6_addr = in6addr_loopback
            connected = connect(to: &address)
        } else {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            if let source {
                address.sin_addr.s_addr = source.bigEndian
                guard bind(to: &address) == 0 else { throw Failure(description: "bind: \(errno)") }
            }
            address.sin_port = in_port_t(port).bigEndian
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            connected = connect(to: &address)
        }
        guard connected == 0 else { throw Failure(description: "connect: \(errno)") }
    }

    /// Connects to a Unix socket.
    init(path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        setDeadline(seconds: 30)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        guard connect(to: &address) == 0 else { throw Failure(description: "connect: \(errno)") }
    }

    /// Uses a socket that is connected.
    init(connected socket: consuming OwnedDescriptor) {
        descriptor = socket.release()
        setDeadline(seconds: 30)
    }

    deinit {
        close(descriptor)
    }

    private func bind<Address>(to address: inout Address) -> Int32 {
        withUnsafeBytes(of: &address) { bytes in
            guard let base = bytes.baseAddress else { return -1 }
            return Glibc.bind(descriptor, base.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
    }

    private func connect<Address>(to address: inout Address) -> Int32 {
        withUnsafeBytes(of: &address) { bytes in
            guard let base = bytes.baseAddress else { return -1 }
            return Glibc.connect(descriptor, base.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
    }

    private func setDeadline(seconds: Int) {
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    func send(_ bytes: [UInt8]) throws {
        var done = 0
        while done < bytes.count {
            let sent = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress.map { $0 + done }, bytes.count - done, Int32(MSG_NOSIGNAL))
            }
            guard sent > 0 else { throw Failure(description: "send: \(errno)") }
            done += sent
        }
    }

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    /// Ends a connection with a reset, and keeps the descriptor.
    static func reset(_ descriptor: Int32) {
        // Connecting to no family dissolves the association (connect(2)), which resets a connection that is established.
        var address = sockaddr(sa_family: sa_family_t(AF_UNSPEC), sa_data: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
        Glibc.connect(descriptor, &address, socklen_t(MemoryLayout<sockaddr>.size))
    }

    /// Closes the sending half.
    func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Sends a request and reads its answer.
    func request(_ head: String, method: String = "GET") throws -> Response {
        try send(head)
        return try response(method: method)
    }

    /// Reads one answer, which the engine delimits by its length, by chunks or by closing.
    func response(method: String = "GET") throws -> Response {
        var answer = Response()
        while true {
            let head = try readHead()
            let lines = head.split(separator: "\r\n")
            let parts = lines.first?.split(separator: " ") ?? []
            guard parts.count >= 2, parts[0] == "HTTP/1.1", let status = Int(parts[1]) else {
                throw Failure(description: "bad status line in \(head)")
            }
            if status < 200 {
                answer.interim.append(status)
                continue
            }
            answer.status = status
            for line in lines.dropFirst() {
                guard let colon = line.firstIndex(of: ":") else { throw Failure(description: "bad field \(line)") }
                let value = line[line.index(after: colon)...].drop { $0 == " " }
                answer.fields.append((String(line[..<colon]), String(value)))
            }
            break
        }
        if method == "HEAD" || answer.status == 204 || answer.status == 304 { return answer }
        if answer["Transfer-Encoding"] == "chunked" {
            answer.body = try readChunks()
        } else if let length = answer["Content-Length"].flatMap({ Int($0) }) {
            answer.body = try read(count: length)
        } else {
            answer.body = readToEnd()
        }
        return answer
    }

    /// Everything until the server closes.
    func readToEnd() -> [UInt8] {
        while fill() > 0 {}
        defer { buffer = [] }
        return buffer
    }

    /// Whether the server ends the connection with a reset, after whatever it has sent.
    func endsWithReset() -> Bool {
        while true {
            let count = fill()
            if count <= 0 { return count < 0 && errno == ECONNRESET }
        }
    }

    /// Whether the server closes, sending nothing more.
    func isClosed() -> Bool { buffer.isEmpty && fill() == 0 }

    /// Whether the connection ends with a reset, after what has arrived before.
    func isReset() -> Bool {
        var chunk = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = recv(descriptor, &chunk, chunk.count, 0)
            let code = errno
            if count <= 0 { return count < 0 && code == ECONNRESET }
        }
    }

    /// Reads exactly `count` bytes.
    func read(count: Int) throws -> [UInt8] {
        while buffer.count < count { try fillOrThrow() }
        defer { buffer.removeFirst(count) }
        return Array(buffer.prefix(count))
    }

    private func readHead() throws -> String {
        while true {
            if let end = buffer.firstRange(of: Array("\r\n\r\n".utf8)) {
                defer { buffer.removeFirst(end.upperBound) }
                return String(decoding: buffer[..<end.lowerBound], as: UTF8.self)
            }
            try fillOrThrow()
        }
    }

    private func readChunks() throws -> [UInt8] {
        var body: [UInt8] = []
        while true {
            while !buffer.contains(10) { try fillOrThrow() }
            guard let end = buffer.firstIndex(of: 10) else { continue }
            let line = String(decoding: buffer[..<(end - 1)], as: UTF8.self)
            buffer.removeFirst(end + 1)
            guard let count = Int(line, radix: 16) else { throw Failure(description: "bad chunk size \(line)") }
            let data = try read(count: count + 2)
            if count == 0 { return body }
            body += data.dropLast(2)
        }
    }

    private func fillOrThrow() throws {
        let count = fill()
        if count == 0 { throw Failure(description: "closed, with \(buffer.count) bytes left over") }
        if count < 0 { throw Failure(description: "recv: \(errno)") }
    }

    private func fill() -> Int {
        var chunk = [UInt8](repeating: 0, count: 65536)
        let count = recv(descriptor, &chunk, chunk.count, 0)
        if count > 0 { buffer += chunk.prefix(count) }
        return count
    }
}
