internal import SystemIO

/// What the access log hears. Where the server has no observer, none of it does anything.
extension EventLoop {
    /// Records the exchange of a request whose answer was sent in one go.
    func record(
        _ connection: Connection, _ headers: HTTPHeaders, _ head: RequestHead, isComplete: Bool
    ) {
        defer { connection.exchange.started = 0 }
        guard let recorder else { return }
        var entry = AccessEntry(client: client(connection, head))
        complete(&entry, connection, isComplete: isComplete)
        withTexts(connection, headers, head) { recorder.record(entry, $0) }
    }

    /// Records the exchange of an answer that was sent bit by bit, or of a request that got none.
    func record(_ connection: Connection, isComplete: Bool) {
        defer { connection.exchange.started = 0 }
        guard let recorder else { return }
        if var draft = connection.draft {
            connection.draft = nil
            complete(&draft.entry, connection, isComplete: isComplete)
            draft.text.withUnsafeBytes { recorder.record(draft.entry, texts: $0) }
        } else if !connection.keptHead.isEmpty {
            withKeptHead(connection) { record(connection, HTTPHeaders(), $0, isComplete: isComplete) }
        }
    }

    /// What the log will say of an answer that is still being sent; nil without a log.
    func draft(_ connection: Connection, _ headers: HTTPHeaders, _ head: RequestHead) -> AccessDraft? {
        guard recorder != nil else { return nil }
        var draft = AccessDraft(entry: AccessEntry(client: client(connection, head)), text: [])
        withTexts(connection, headers, head) { $0.forEach(lengthsIn: &draft.entry) { draft.text += $0 } }
        return draft
    }

    /// Puts the texts of an exchange into ``stagedTexts``. Returns nil without a log.
    func stageEntry(_ connection: Connection, _ headers: HTTPHeaders, _ head: RequestHead) -> AccessEntry? {
        guard recorder != nil else { return nil }
        var entry = AccessEntry(client: client(connection, head))
        withTexts(connection, headers, head) { $0.forEach(lengthsIn: &entry, stagedTexts.append) }
        return entry
    }

    /// Records the exchange of an answer that was staged.
    func record(_ answer: StagedAnswer, isComplete: Bool) {
        defer { answer.connection.exchange.started = 0 }
        guard let recorder, var entry = answer.entry else { return }
        complete(&entry, answer.connection, isComplete: isComplete)
        recorder.record(entry, texts: stagedTexts.kept(answer.texts))
    }

    private func client(_ connection: Connection, _ head: RequestHead) -> IPAddress? {
        settings.proxies.origin(peer: connection.peer, head: head).client
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
    private func withTexts(
        _ connection: Connection, _ headers: HTTPHeaders, _ head: RequestHead, _ body: (AccessTexts) -> Void
    ) {
        headers.encoded.withUnsafeBytes { encoded in
            withUnsafeTemporaryAllocation(byteCount: RequestID.length, alignment: 1) { made in
                var requestID = UnsafeRawBufferPointer(made)
                if connection.exchange.madeID == 0, let given = head.first(.requestID) {
                    requestID = given
                } else if let target = made.baseAddress {
                    RequestID.write(connection.exchange.madeID, to: target)
                }
                var texts = AccessTexts(
                    method: head.methodBytes, target: head.targetBytes, requestID: requestID,
                    cacheStatus: encoded.slice(headers.cacheStatus))
                if settings.recordsClientFields {
                    if let referrer = head.first(named: "Referer") { texts.referrer = referrer }
                    if let userAgent = head.first(named: "User-Agent") { texts.userAgent = userAgent }
                }
                body(texts)
            }
        }
    }
}
