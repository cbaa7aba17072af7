/// What the access log hears. Where the server has no observer, none of it does anything.
extension EventLoop {
    /// Records the exchange of the request in ``head``, whose answer was sent in one go.
    func recordCurrent(_ connection: Connection, isComplete: Bool) {
        defer { connection.exchange.started = 0 }
        guard recorder != nil else { return }
        var entry = AccessEntry(client: client(connection))
        complete(&entry, connection, isComplete: isComplete)
        withTexts(connection) { recorder?.record(entry, $0) }
    }

    /// Records the exchange of an answer that was sent bit by bit, or of a request that got none.
    func record(_ connection: Connection, isComplete: Bool) {
        defer { connection.exchange.started = 0 }
        guard recorder != nil else { return }
        if var draft = connection.exchange.draft {
            connection.exchange.draft = nil
            complete(&draft.entry, connection, isComplete: isComplete)
            recorder?.record(draft)
        } else if !connection.exchange.keptHead.isEmpty {
            withKeptHead(connection) { recordCurrent(connection, isComplete: isComplete) }
        }
    }

    /// What the log will say of an answer that is still being sent; nil without a log.
    func draft(_ connection: Connection) -> AccessDraft? {
        guard recorder != nil else { return nil }
        var draft = AccessDraft(entry: AccessEntry(client: client(connection)), text: [])
        withTexts(connection) { $0.append(to: &draft.text, lengthsIn: &draft.entry) }
        return draft
    }

    private func client(_ connection: Connection) -> IPAddress? {
        settings.proxies.client(peer: connection.peer, head: head)
    }

    /// Adds what is known once the exchange is over.
    private func complete(_ entry: inout AccessEntry, _ connection: Connection, isComplete: Bool) {
        entry.time = clock.unixTime
        entry.duration = Int((LoopClock.monotonic() - connection.exchange.started) / 1000)
        entry.status = connection.exchange.status
        entry.bytes = connection.exchange.bodyBytes
        entry.isComplete = isComplete
    }

    /// Calls `body` with the texts of the exchange.
    private func withTexts(_ connection: Connection, _ body: (AccessTexts) -> Void) {
        let headers = connection.exchange.headers
        headers.encoded.withUnsafeBytes { encoded in
            withUnsafeTemporaryAllocation(byteCount: RequestID.length, alignment: 1) { made in
                var requestID = UnsafeRawBufferPointer(made)
                if connection.exchange.madeID == 0, let given = head.first(.requestID) {
                    requestID = given
                } else if let target = made.baseAddress {
                    RequestID.write(connection.exchange.madeID, to: target)
                }
                body(
                    AccessTexts(
                        method: head.methodBytes, target: head.targetBytes, requestID: requestID,
                        cacheStatus: encoded.slice(headers.cacheStatus)))
            }
        }
    }
}
