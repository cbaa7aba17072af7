@testable import HTTP

/// A head as plain values, for tests.
struct Parsed: Equatable {
    var method: String
    var target: String
    var host: String
    var length: Int
    var framing: BodyFraming
    var keepsAlive: Bool
    var expectsContinue: Bool

    /// Parses `text`; nil while it is incomplete.
    init?(_ text: String, limits: HeadLimits = HeadLimits()) throws(HTTPProtocolError) {
        try self.init(Array(text.utf8), limits: limits)
    }

    init?(_ bytes: [UInt8], limits: HeadLimits = HeadLimits()) throws(HTTPProtocolError) {
        var result: Result<Parsed?, HTTPProtocolError> = .success(nil)
        bytes.withUnsafeBytes { buffer in
            var head = RequestHead()
            do throws(HTTPProtocolError) {
                guard try RequestHeadParser(limits: limits).parse(buffer, into: &head) else { return }
                result = .success(Parsed(head))
            } catch {
                result = .failure(error)
            }
        }
        guard let parsed = try result.get() else { return nil }
        self = parsed
    }

    private init(_ head: RequestHead) {
        method = head.method.description
        target = String(decoding: head.targetBytes, as: UTF8.self)
        host = String(decoding: head.authorityBytes, as: UTF8.self)
        length = head.length
        framing = head.framing
        keepsAlive = head.keepsAlive
        expectsContinue = head.expectsContinue
    }
}

/// Calls `body` with the head of a GET of `/` that has these fields.
func withHead<Value>(
    _ fields: String..., method: String = "GET", version: String = "1.1", _ body: (RequestHead) throws -> Value
) throws -> Value {
    let text = "\(method) / HTTP/\(version)\r\nHost: h\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
    return try Array(text.utf8).withUnsafeBytes { bytes in
        var head = RequestHead()
        guard try RequestHeadParser().parse(bytes, into: &head) else { throw HTTPProtocolError.malformedField }
        return try body(head)
    }
}
