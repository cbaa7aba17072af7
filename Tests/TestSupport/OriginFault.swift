/// A fault of an origin, or a correct answer that looks like one.
package struct OriginFault: Sendable {
    /// The name of the fault; with a slash before it, also its path at an origin.
    package let name: String
    package let handler: LoopbackOrigin.Handler

    private init(_ name: String, _ handler: @escaping LoopbackOrigin.Handler) {
        self.name = name
        self.handler = handler
    }

    private init(_ name: String, _ answer: LoopbackAnswer) {
        self.init(name) { _ in answer }
    }

    /// Forty faults of one GIF.
    ///
    /// - Parameter gif: A GIF whose first half contains no complete frame.
    package static func all(of gif: [UInt8]) -> [OriginFault] {
        silences(gif) + lengths(gif) + framings(gif) + statuses(gif) + types(gif) + heads(gif) + redirects(gif)
            + validators(gif)
    }

    private static let ok = "HTTP/1.1 200 OK\r\nContent-Type: image/gif\r\n"

    /// Bytes verbatim; the connection ends after them.
    private static func raw(_ fields: String, _ body: [UInt8], then steps: [LoopbackAnswer.Step] = []) -> LoopbackAnswer {
        .raw(ok + fields + "\r\n", body, then: steps)
    }

    private static func half(_ bytes: [UInt8]) -> [UInt8] { Array(bytes.prefix(bytes.count / 2)) }

    private static func silences(_ gif: [UInt8]) -> [OriginFault] {
        [
            OriginFault("no-answer", LoopbackAnswer(steps: [.hang])),
            OriginFault("half-a-head", .raw(ok, then: [.hang])),
            OriginFault("half-a-body", raw("Content-Length: \(gif.count)\r\n", half(gif), then: [.hang])),
            OriginFault(
                "a-byte-a-second", raw("Content-Length: 100000\r\n", [], then: [.trickle(gif, every: .seconds(1)), .hang])),
            OriginFault("late", LoopbackAnswer(steps: [.pause(.milliseconds(500))] + LoopbackAnswer.ok(gif).steps)),
        ]
    }

    private static func lengths(_ gif: [UInt8]) -> [OriginFault] {
        [
            OriginFault("length-too-small", raw("Content-Length: \(gif.count / 2)\r\n", gif)),
            OriginFault("length-too-large", raw("Content-Length: \(gif.count * 2)\r\n", gif)),
            OriginFault("length-huge", raw("Content-Length: 10000000000\r\n", gif, then: [.hang])),
            OriginFault("length-negative", raw("Content-Length: -1\r\n", gif)),
            OriginFault("length-twice", raw("Content-Length: \(gif.count + 9)\r\nContent-Length: \(gif.count)\r\n", gif)),
            OriginFault(
                "endless", raw("", [], then: [.sendForever(Array("GIF89a".utf8) + [UInt8](repeating: 0, count: 65_530))])),
        ]
    }

    private static func framings(_ gif: [UInt8]) -> [OriginFault] {
        let chunk = Array((String(gif.count * 2, radix: 16) + "\r\n").utf8)
        return [
            OriginFault("chunk-without-size", raw("Transfer-Encoding: chunked\r\n", Array("zz\r\n".utf8) + gif)),
            OriginFault("chunk-cut", raw("Transfer-Encoding: chunked\r\n", chunk + gif)),
            OriginFault(
                "reset-in-the-body",
                raw("Content-Length: \(gif.count)\r\n", Array(gif.prefix(10)), then: [.pause(.milliseconds(50)), .reset])),
            OriginFault("reset-at-once", LoopbackAnswer(steps: [.reset])),
            OriginFault("no-head", .raw("", gif)),
        ]
    }

    private static func statuses(_ gif: [UInt8]) -> [OriginFault] {
        [
            OriginFault("empty", .ok([])),
            OriginFault("no-content", .raw("HTTP/1.1 204 No Content\r\n\r\n")),
            OriginFault(
                "part-unasked",
                .response("206 Partial Content", ["Content-Range: bytes 0-9/\(gif.count)"], body: Array(gif.prefix(10)))),
            OriginFault("not-modified-unasked", .raw("HTTP/1.1 304 Not Modified\r\n\r\n")),
        ] + [403, 404, 410, 500, 502].map { OriginFault("status-\($0)", .status($0)) }
            + [429, 503].map { OriginFault("status-\($0)", .status($0, ["Retry-After: 120"])) } + [
                OriginFault("every-second-time") { $0.number % 2 == 0 ? .ok(gif) : .status(503) }
            ]
    }

    private static func types(_ gif: [UInt8]) -> [OriginFault] {
        // Ten megabytes of zeros, compressed, again and again: decompressed, they exceed every limit.
        let gzipped: [UInt8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x73, 0xf7, 0x74, 0xb3, 0xb0, 0x4c]
        return [
            OriginFault("type-html", .ok(gif, ["Content-Type: text/html"])),
            OriginFault("type-missing", .ok(gif)),
            OriginFault("gzip-unasked", .ok(gzipped, ["Content-Encoding: gzip"])),
            OriginFault(
                "gzip-endless",
                raw("Content-Encoding: gzip\r\n", gzipped, then: [.sendForever([UInt8](repeating: 0, count: 65_536))])),
        ]
    }

    private static func heads(_ gif: [UInt8]) -> [OriginFault] {
        let interim = Array(String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 1000).utf8)
        return [
            OriginFault("field-of-a-megabyte", .ok(gif, ["X: " + String(repeating: "a", count: 1_000_000)])),
            OriginFault("fields-by-thousands", .ok(gif, (0..<20_000).map { "X\($0): a" })),
            OriginFault("line-break-in-a-field", .ok(gif, ["ETag: \"a\rX-Evil: 1\"", "Last-Modified: x"])),
            OriginFault(
                "interim-answers",
                LoopbackAnswer(steps: Array(repeating: .send(interim), count: 100) + LoopbackAnswer.ok(gif).steps)),
        ]
    }

    private static func redirects(_ gif: [UInt8]) -> [OriginFault] {
        [
            OriginFault("redirect-to-itself", .redirect(to: "/redirect-to-itself")),
            OriginFault("redirects") { request in
                let left = Int(request.query) ?? 3
                return left == 0 ? .ok(gif) : .redirect(to: "/redirects?\(left - 1)")
            },
        ]
    }

    private static func validators(_ gif: [UInt8]) -> [OriginFault] {
        [
            OriginFault("another-each-time") { request in
                .ok(gif + [UInt8(truncatingIfNeeded: request.number)], ["ETag: \"\(request.number)\""])
            },
            OriginFault("with-a-tag") { .tagged("\"v1\"", gif, $0) },
        ]
    }
}
