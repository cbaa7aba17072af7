internal import Glibc

/// A blocking HTTP/1.1 client over one connection on loopback, which sends bytes verbatim and returns answers unchanged.
package struct RawHTTPClient: ~Copyable {
    package struct Failure: Error {
        package let what: String
        /// Whether the server neither sent anything nor ended the connection in time.
        package var isSilence = false
    }

    private let socket: Int32
    private var buffer: [UInt8] = []
    private var wasClosed = false

    /// Connects to 127.0.0.1; reads and writes fail after `timeout` seconds. A server in the process of the tests may wait for a thread of
    /// Swift's pool until other tests have ended.
    package init(port: Int, timeout: Int = 120) throws(Failure) {
        let number = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard number >= 0 else { throw Failure(what: "socket") }
        var limit = timeval(tv_sec: timeout, tv_usec: 0)
        setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(port)).bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else {
            close(number)
            throw Failure(what: "connect")
        }
        socket = number
    }

    deinit {
        close(socket)
    }

    /// Sends bytes verbatim.
    package func send(_ bytes: [UInt8]) throws(Failure) {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(socket, $0.baseAddress.map { $0 + done }, $0.count - done, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw Failure(what: "send") }
            done += count
        }
    }

    /// Sends a request and reads its answer.
    package mutating func request(
        _ method: String = "GET", _ target: String, headers: [String] = [], body: [UInt8] = []
    ) throws(Failure) -> RawHTTPResponse {
        try send(method, target, headers: headers, body: body)
        return try readResponse(toHead: method == "HEAD")
    }

    /// Sends a request. It has a `Host` of its own unless `headers` has one.
    package func send(
        _ method: String, _ target: String, version: String = "1.1", headers: [String] = [], body: [UInt8] = []
    ) throws(Failure) {
        var head = "\(method) \(target) HTTP/\(version)\r\n"
        if !headers.contains(where: { $0.hasPrefix("Host:") }) { head += "Host: 127.0.0.1\r\n" }
        for header in headers { head += header + "\r\n" }
        if !body.isEmpty { head += "Content-Length: \(body.count)\r\n" }
        try send(Array((head + "\r\n").utf8) + body)
    }

    /// Reads the head of a response.
    package mutating func readHead() throws(Failure) -> RawHTTPResponse {
        var headEnd: Int?
        while headEnd == nil {
            headEnd = buffer.indices.first { buffer[$0...].starts(with: "\r\n\r\n".utf8) }
            if headEnd == nil { try fill() }
        }
        guard let end = headEnd, let response = RawHTTPResponse(head: String(decoding: buffer[..<end], as: UTF8.self)) else {
            throw Failure(what: "head")
        }
        buffer.removeFirst(end + 4)
        return response
    }

    /// Reads exactly `count` bytes.
    package mutating func read(_ count: Int) throws(Failure) -> [UInt8] {
        while buffer.count < count { try fill() }
        defer { buffer.removeFirst(count) }
        return Array(buffer.prefix(count))
    }

    /// Reads all bytes until the server ends the connection, and how it does so.
    package mutating func readToEnd() -> (bytes: [UInt8], isReset: Bool) {
        while true {
            do throws(Failure) { try fill() } catch { break }
        }
        let isReset = errno == ECONNRESET && !wasClosed
        defer { buffer = [] }
        return (buffer, isReset)
    }

    /// Reads one response with a `Content-Length` or in chunks, or without a body if `toHead`.
    package mutating func readResponse(toHead: Bool = false) throws(Failure) -> RawHTTPResponse {
        var response = try readHead()
        if response["transfer-encoding"] == "chunked", !toHead {
            response.body = try readChunks()
            return response
        }
        let length =
            toHead || response.status == 304 || response.status == 204
            ? 0 : Int(response["content-length"] ?? "0") ?? 0
        response.body = try read(length)
        return response
    }

    /// Reads chunks without extensions and trailers (RFC 9112 section 7.1).
    private mutating func readChunks() throws(Failure) -> [UInt8] {
        var body: [UInt8] = []
        while true {
            var line: [UInt8] = []
            while line.suffix(2) != [13, 10] { line += try read(1) }
            guard let size = Int(String(decoding: line.dropLast(2), as: UTF8.self), radix: 16) else {
                throw Failure(what: "chunk")
            }
            body += try read(size)
            guard try read(2) == [13, 10] else { throw Failure(what: "chunk") }
            if size == 0 { return body }
        }
    }

    private mutating func fill() throws(Failure) {
        var chunk = [UInt8](repeating: 0, count: 65536)
        let count = recv(socket, &chunk, chunk.count, 0)
        wasClosed = count == 0
        if count == 0 { throw Failure(what: "the server closed the connection") }
        if count < 0 { throw Failure(what: "recv", isSilence: errno == EAGAIN) }
        buffer += chunk[..<count]
    }
}

/// An answer of a server.
package struct RawHTTPResponse: Sendable {
    package let status: Int
    /// Names in lower case.
    package let headers: [String: String]
    package var body: [UInt8] = []
    private var counts: [String: Int] = [:]

    init?(head: String) {
        let lines = head.split(separator: "\r\n")
        guard let first = lines.first?.split(separator: " "), first.count >= 2, let status = Int(first[1]) else { return nil }
        self.status = status
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { return nil }
            counts[parts[0].lowercased(), default: 0] += 1
            headers[parts[0].lowercased()] = String(parts[1].drop { $0 == " " })
        }
        self.headers = headers
    }

    package subscript(_ name: String) -> String? { headers[name] }

    /// The number of fields with a name in lower case.
    package func fieldCount(_ name: String) -> Int { counts[name] ?? 0 }

    /// The `max-age` of a field.
    package func maxAge(_ field: String = "cache-control") -> Int? {
        self[field]?.split(separator: "max-age=", maxSplits: 1).last.flatMap { Int($0.prefix(while: \.isNumber)) }
    }

    /// Whether a field is `public, max-age=N` and `rest`, where N is what is left of `seconds` after up to a minute.
    package func permits(_ seconds: Int, _ rest: String, field: String = "cache-control") -> Bool {
        guard let age = maxAge(field), (seconds - 60...seconds).contains(age) else { return false }
        return self[field] == "public, max-age=\(age)\(rest)"
    }

    /// The body as text.
    package var text: String { String(decoding: body, as: UTF8.self) }
}
