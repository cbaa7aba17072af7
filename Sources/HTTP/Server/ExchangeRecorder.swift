internal import SystemIO

/// Records a loop's exchanges as access log entries. Used by one loop thread.
final class ExchangeRecorder {
    private let batches: AccessRecorder
    private let clock: LoopClock
    private let parser: RequestHeadParser
    private let recordsClientFields: Bool
    private let stagedTexts = OutputBuffer(capacity: 16 * 1024)

    /// The entry of a staged response, whose texts are kept by the recorder.
    struct StagedEntry {
        fileprivate var entry: AccessEntry
        fileprivate let texts: Range<Int>
    }

    init(_ log: AccessLog, settings: LoopSettings, clock: LoopClock) {
        batches = AccessRecorder(log)
        parser = settings.parser
        recordsClientFields = settings.configuration.recordsClientFields
        self.clock = clock
    }

    /// Whether no entries are waiting to be posted.
    var isEmpty: Bool { batches.isEmpty }

    /// Posts the recorded entries.
    func flush() { batches.flush() }

    /// Records an exchange whose response was sent at once.
    func record(_ connection: Connection, _ headers: HTTPHeaders, _ head: RequestHead, isComplete: Bool) {
        var entry = AccessEntry(client: connection.exchange.client)
        complete(&entry, connection, isComplete: isComplete)
        withTexts(connection, headers, head) { batches.record(entry, $0) }
    }

    /// Returns the entry of a response that is still being sent.
    func draft(_ connection: Connection, _ headers: HTTPHeaders, _ head: RequestHead) -> AccessDraft {
        var draft = AccessDraft(entry: AccessEntry(client: connection.exchange.client), text: [])
        withTexts(connection, headers, head) { $0.forEach(lengthsIn: &draft.entry) { draft.text += $0 } }
        return draft
    }

    /// Records an exchange whose response was sent over several turns, or whose request got no response.
    func record(_ connection: Connection, isComplete: Bool) {
        if var draft = connection.draft {
            connection.draft = nil
            complete(&draft.entry, connection, isComplete: isComplete)
            draft.text.withUnsafeBytes { batches.record(draft.entry, texts: $0) }
        } else if !connection.keptHead.isEmpty {
            _ = connection.withKeptHead(parser) { record(connection, HTTPHeaders(), $0, isComplete: isComplete) }
        }
    }

    func stage(_ connection: Connection, _ headers: HTTPHeaders, _ head: RequestHead) -> StagedEntry {
        var entry = AccessEntry(client: connection.exchange.client)
        withTexts(connection, headers, head) { $0.forEach(lengthsIn: &entry, stagedTexts.append) }
        return StagedEntry(entry: entry, texts: stagedTexts.keep())
    }

    func record(_ staged: StagedEntry, _ connection: Connection, isComplete: Bool) {
        var entry = staged.entry
        complete(&entry, connection, isComplete: isComplete)
        batches.record(entry, texts: stagedTexts.kept(staged.texts))
    }

    /// Returns the entry of a staged response that is sent over several turns.
    func draft(_ staged: StagedEntry) -> AccessDraft {
        AccessDraft(entry: staged.entry, text: Array(stagedTexts.kept(staged.texts)))
    }

    func removeStaged() { stagedTexts.removeAll() }

    /// Adds the values known only at the end of the exchange.
    private func complete(_ entry: inout AccessEntry, _ connection: Connection, isComplete: Bool) {
        entry.time = clock.unixMilliseconds
        entry.duration = Int((LoopClock.monotonic() - connection.exchange.started) / 1000)
        entry.status = connection.exchange.status
        entry.bytes = connection.exchange.bodyBytes
        entry.isComplete = isComplete
    }

    private func withTexts(
        _ connection: Connection, _ headers: HTTPHeaders, _ head: RequestHead, _ body: (AccessTexts) -> Void
    ) {
        headers.encoded.withUnsafeBytes { encoded in
            withUnsafeTemporaryAllocation(byteCount: RequestID.length, alignment: 1) { generated in
                var requestID = UnsafeRawBufferPointer(generated)
                if connection.exchange.generatedID == 0, let given = head.first(.requestID) {
                    requestID = given
                } else if let target = generated.baseAddress {
                    RequestID.write(connection.exchange.generatedID, to: target)
                }
                var texts = AccessTexts(
                    method: head.methodBytes, target: head.targetBytes, requestID: requestID,
                    cacheStatus: encoded.slice(headers.cacheStatus))
                if recordsClientFields {
                    if let referrer = head.first(named: "Referer") { texts.referrer = referrer }
                    if let userAgent = head.first(named: "User-Agent") { texts.userAgent = userAgent }
                }
                body(texts)
            }
        }
    }
}
