/// An answer of a ``LoopbackOrigin``: bytes and events in order.
package struct LoopbackAnswer: Sendable {
    package enum Step: Sendable {
        case send([UInt8])
        /// Sends the same bytes repeatedly until the other side closes.
        case sendForever([UInt8])
        /// Sends one byte each interval, until the other side closes.
        case trickle([UInt8], every: Duration)
        /// Does nothing until the other side closes.
        case hang
        case wait(until: LoopbackGate)
        /// Opens the gate; all steps before this one are done.
        case open(LoopbackGate)
        case pause(Duration)
        /// Ends the connection with RST.
        case reset
    }

    package var steps: [Step]
    /// Whether another request may follow on the connection.
    package var keepsAlive: Bool

    package init(steps: [Step], keepsAlive: Bool = false) {
        self.steps = steps
        self.keepsAlive = keepsAlive
    }

    /// A head and a body. The head declares the body's length unless the fields do.
    package static func response(
        _ status: String = "200 OK", _ fields: [String] = [], body: [UInt8] = [], declaresLength: Bool = true
    ) -> LoopbackAnswer {
        var head = "HTTP/1.1 \(status)\r\n"
        if declaresLength { head += "Content-Length: \(body.count)\r\n" }
        for field in fields { head += field + "\r\n" }
        return LoopbackAnswer(steps: [.send(Array((head + "\r\n").utf8) + body)], keepsAlive: declaresLength)
    }

    /// 200 with `body`.
    package static func ok(_ body: [UInt8], _ fields: [String] = []) -> LoopbackAnswer {
        response("200 OK", fields, body: body)
    }

    /// A status with a short text as its body.
    package static func status(_ code: Int, _ fields: [String] = []) -> LoopbackAnswer {
        response("\(code) Status", fields, body: Array("error".utf8))
    }

    package static func redirect(to location: String, _ code: Int = 302) -> LoopbackAnswer {
        response("\(code) Moved", ["Location: \(location)"])
    }

    /// Bytes verbatim, then the end of the connection.
    package static func raw(_ text: String, _ body: [UInt8] = [], then steps: [Step] = []) -> LoopbackAnswer {
        LoopbackAnswer(steps: [.send(Array(text.utf8) + body)] + steps)
    }

    /// This answer, delayed until `gate` is open.
    package func after(_ gate: LoopbackGate) -> LoopbackAnswer {
        LoopbackAnswer(steps: [.wait(until: gate)] + steps, keepsAlive: keepsAlive)
    }

    /// The answer to a request with this entity tag: 304 if `If-None-Match` names it, else `body`.
    package static func tagged(_ etag: String, _ body: [UInt8], _ request: LoopbackRequest) -> LoopbackAnswer {
        if request.headers["if-none-match"] == etag {
            return response("304 Not Modified", ["ETag: \(etag)"], declaresLength: false).keptAlive()
        }
        return ok(body, ["ETag: \(etag)"])
    }

    private func keptAlive() -> LoopbackAnswer {
        LoopbackAnswer(steps: steps, keepsAlive: true)
    }
}

/// A request as a ``LoopbackOrigin`` received it.
package struct LoopbackRequest: Sendable {
    package let method: String
    /// Path and query.
    package let target: String
    package let path: String
    /// The part after the question mark; empty without one.
    package let query: String
    /// Header fields by lower-case name; of repeated fields the last.
    package let headers: [String: String]
    /// The number of requests for its path, including this one.
    package internal(set) var number = 0
    /// As long as `Content-Length` says.
    package internal(set) var body: [UInt8] = []

    init?(head: String) {
        let lines = head.split(separator: "\r\n")
        let parts = lines.first?.split(separator: " ") ?? []
        guard parts.count == 3 else { return nil }
        method = String(parts[0])
        target = String(parts[1])
        path = String(target.prefix { $0 != "?" })
        query = String(target.dropFirst(path.count + 1))
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            headers[line[..<colon].lowercased()] = String(line[line.index(after: colon)...].drop { $0 == " " })
        }
        self.headers = headers
    }
}
