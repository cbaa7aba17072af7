import Glibc
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import HTTP

/// Runs `body` against a server on a free port, and stops it.
func withServer(
    _ handler: any HTTPHandler = StubHandler(), observer: (any HTTPObserver)? = nil,
    report: @escaping @Sendable (HTTPServerEvent) -> Void = { _ in },
    configure: (inout HTTPServerConfiguration) -> Void = { _ in },
    _ body: (HTTPServer, Int) async throws -> Void
) async throws {
    var configuration = HTTPServerConfiguration()
    configuration.port = 0
    configuration.threads = 2
    configuration.usesSocketActivation = false
    configure(&configuration)
    let observers = observer.map { [$0] } ?? []
    let server = HTTPServer(configuration: configuration, handler: handler, observers: observers, report: report)
    try server.start()
    do {
        try await body(server, server.port ?? 0)
    } catch {
        await server.stop()
        throw error
    }
    await server.stop()
}

extension HTTPHandler {
    /// Returns the error's sentence as text.
    func response(to error: HTTPProtocolError) -> HTTPResponse {
        var response = HTTPResponse(
            status: error.status, contentType: "text/plain; charset=utf-8", text: error.sentence + "\n")
        if let seconds = error.retryAfter { response.headers.append("Retry-After", String(seconds)) }
        return response
    }
}

/// A handler that calls a closure.
struct ClosureHandler: HTTPHandler {
    let body: @Sendable (borrowing HTTPRequest) -> HTTPReply

    init(_ body: @escaping @Sendable (borrowing HTTPRequest) -> HTTPReply) {
        self.body = body
    }

    func respond(to request: borrowing HTTPRequest) -> HTTPReply { body(request) }
}

/// A handler with responses of its own to requests that the server refuses.
struct RefusingHandler: HTTPHandler {
    let refuse: @Sendable (HTTPProtocolError) -> HTTPResponse

    init(_ refuse: @escaping @Sendable (HTTPProtocolError) -> HTTPResponse) {
        self.refuse = refuse
    }

    func respond(to request: borrowing HTTPRequest) -> HTTPReply { StubHandler().respond(to: request) }
    func response(to error: HTTPProtocolError) -> HTTPResponse { refuse(error) }
}

/// Serves `/file` (a representation) and `/echo` (the request as text), and 404 for the rest.
struct StubHandler: HTTPHandler {
    static let content = (0..<5000).map { UInt8(truncatingIfNeeded: $0 % 251) }
    static let entityTag = "\"v1\""
    static let lastModified = 1_600_000_000

    static let resource = HTTPResource(
        bytes: content, contentType: "video/mp4", entityTag: entityTag, lastModified: lastModified,
        headers: ["Cache-Control": "public, max-age=60"])

    func respond(to request: borrowing HTTPRequest) -> HTTPReply {
        switch request.target {
        case "/file": return .now(HTTPResponse(Self.resource, headers: ["Cache-Status": "test; hit"]))
        case "/echo":
            let client = request.clientAddress.map(\.description) ?? "none"
            return .now(
                HTTPResponse(
                    status: 200, contentType: "text/plain",
                    text: "\(request.method) \(request.host ?? "-") \(client) \(request.id)"))
        default: return .now(HTTPResponse(status: 404, contentType: "text/plain", text: "nothing here"))
        }
    }
}

/// A value that the threads and tasks of a test share and can wait for.
final class Shared<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    init(_ value: Value) {
        state = Mutex(value)
    }

    var value: Value { state.withLock { $0 } }

    func update(_ body: (inout Value) -> Void) { state.withLock { body(&$0) } }

    /// Returns when `condition` holds.
    func wait(
        until condition: @Sendable (Value) -> Bool, file: String = #fileID, line: Int = #line
    ) async throws {
        try await waitUntil("a value, which is \(value)", file: file, line: line) { condition(value) }
    }

    /// Blocks a thread of the test until `condition` holds.
    func block(file: String = #fileID, line: Int = #line, until condition: (Value) -> Bool) throws {
        try blockUntil("a value, which is \(value)", file: file, line: line) { condition(value) }
    }
}

extension Shared<Bool> {
    /// Returns when the value is true, or the task is cancelled.
    func waitUntilOpen() async {
        try? await waitUntil("the gate to open") { value }
    }
}

/// A file without a name, with these bytes.
func temporaryFile(_ bytes: [UInt8]) throws -> SharedDescriptor {
    var file = try MemoryFile(name: "http-test")
    try bytes.withUnsafeBytes { try file.append($0) }
    return try file.seal()
}

/// Collects finished requests as text.
struct AccessCollector: HTTPObserver {
    let lines: Shared<[String]>

    func requestsFinished(_ batch: HTTPAccessBatch) {
        batch.forEach { record in
            let texts = [record.method, record.target, record.cacheStatus].map { String(decoding: $0, as: UTF8.self) }
            let client = record.client.map(\.description) ?? "-"
            let line = "\(client) \(texts[0]) \(texts[1]) \(record.status) \(record.bytes) \(record.isComplete) [\(texts[2])]"
            lines.update { $0.append(line) }
        }
    }
}
