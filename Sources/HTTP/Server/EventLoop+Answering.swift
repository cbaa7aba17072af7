internal import SystemIO

/// From an answer to bytes.
extension EventLoop {
    func answer(_ connection: Connection, _ response: HTTPResponse, _ head: RequestHead) {
        decidePersistence(connection)
        output.restart()
        switch response.body {
        case .resource(let resource) where response.status == 200 && (head.method == .get || head.method == .head):
            answer(connection, resource, response.headers, head)
        case .resource(let resource):
            beginHead(connection, response.status)
            output.append(resource.wholeFields)
            endHead(connection, response.headers, head)
            send(connection, Segment(resource.content, 0..<resource.length), response.headers, head)
        case .empty:
            beginHead(connection, response.status)
            if !HTTPStatus.isBodiless(response.status) { output.append("Content-Length: 0\r\n") }
            endHead(connection, response.headers, head)
            send(connection, nil, response.headers, head)
        case .bytes(let body):
            beginHead(connection, response.status)
            if !HTTPStatus.isBodiless(response.status) { appendLength(body.count) }
            endHead(connection, response.headers, head)
            send(connection, Segment(body), response.headers, head)
        case .stream(let produce):
            beginHead(connection, response.status)
            if head.minorVersion == 0 {
                connection.exchange.closes = true
            } else {
                output.append("Transfer-Encoding: chunked\r\n")
            }
            endHead(connection, response.headers, head)
            beginStream(connection, produce, response.headers, head)
        }
    }

    /// The part of a representation that the request's fields ask for.
    private func answer(
        _ connection: Connection, _ resource: HTTPResource, _ headers: HTTPHeaders, _ head: RequestHead
    ) {
        let selection =
            head.isConditionalOrPartial
            ? Selection(
                head: head, validators: resource.validators, length: resource.length, now: clock.unixTime)
            : .whole
        switch selection {
        case .whole:
            connection.exchange.status = 200
            output.append(resource.wholeHead)
            endHead(connection, headers, head)
            send(connection, Segment(resource.content, 0..<resource.length), headers, head)
        case .part(let range):
            connection.exchange.status = 206
            output.append(resource.partHead)
            output.append("Content-Range: bytes ")
            output.append(decimal: range.lowerBound)
            output.append("-")
            output.append(decimal: range.upperBound - 1)
            output.append("/")
            output.append(decimal: resource.length)
            output.append("\r\n")
            appendLength(range.count)
            endHead(connection, headers, head)
            send(connection, Segment(resource.content, range), headers, head)
        case .parts(let ranges):
            let multipart = MultipartRanges(resource, ranges, boundary: RequestID.text(requestIDs.next()))
            connection.exchange.status = 206
            output.append(resource.partsHead)
            output.append(multipart.contentType)
            appendLength(multipart.length)
            endHead(connection, headers, head)
            send(connection, multipart.segments[0], more: multipart.segments.dropFirst(), headers, head)
        case .notModified:
            connection.exchange.status = 304
            output.append(resource.notModifiedHead)
            endHead(connection, headers, head)
            send(connection, nil, headers, head)
        case .preconditionFailed:
            var response = errorResponse(.preconditionFailed)
            response.headers.append(headers)
            answer(connection, response, head)
        case .rangeNotSatisfiable:
            var response = errorResponse(.rangeNotSatisfiable)
            response.headers.append("Content-Range", "bytes */\(resource.length)")
            response.headers.append(headers)
            answer(connection, response, head)
        }
    }

    /// Whether the connection can serve another request after this one.
    private func decidePersistence(_ connection: Connection) {
        if drain != nil || settings.admission.isContended { connection.exchange.closes = true }
        guard let body = connection.body else { return }
        // A client that waits for 100 may send its body or not: there is no telling where the next request begins.
        if connection.exchange.awaitsContinue || body.knownRemainder ?? 0 > settings.maxDiscarded {
            connection.exchange.closes = true
        }
    }

    private func beginHead(_ connection: Connection, _ status: Int) {
        connection.exchange.status = status
        if status == 200 {
            output.append("HTTP/1.1 200 OK\r\n")
            return
        }
        var line: [UInt8] = []
        HTTPStatus.appendLine(status, to: &line)
        output.append(line)
    }

    private func appendLength(_ length: Int) {
        output.append("Content-Length: ")
        output.append(decimal: length)
        output.append("\r\n")
    }

    /// The fields that differ from answer to answer, and the empty line.
    private func endHead(_ connection: Connection, _ headers: HTTPHeaders, _ head: RequestHead) {
        output.append(headers.encoded)
        output.append(clock.dateLine)
        output.append("X-Request-Id: ")
        if connection.exchange.madeID == 0, let given = head.first(.requestID) {
            output.append(given)
        } else {
            output.append(requestID: connection.exchange.madeID)
        }
        if connection.exchange.closes {
            output.append("\r\nConnection: close\r\n\r\n")
        } else if head.minorVersion == 0 {
            output.append("\r\nConnection: keep-alive\r\n\r\n")
        } else {
            output.append("\r\n\r\n")
        }
        connection.exchange.headBytes = output.count
    }
}
