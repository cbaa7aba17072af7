/// Finished requests of one loop, in order. Their texts lie in one array, so that a request costs no allocation.
package struct HTTPAccessBatch: Sendable {
    private(set) var entries: [AccessEntry] = []
    private(set) var text: [UInt8] = []
    /// Requests besides these of which nothing is known, because the observer was too slow.
    package let lost: Int

    /// Requests in the batch.
    package var count: Int { entries.count }

    init(lost: Int = 0) {
        self.lost = lost
        guard lost == 0 else { return }
        entries.reserveCapacity(AccessRecorder.batchSize)
        text.reserveCapacity(AccessRecorder.batchSize * 128)
    }

    mutating func append(_ entry: AccessEntry, _ texts: AccessTexts) {
        var entry = entry
        texts.forEach(lengthsIn: &entry) { text.append(contentsOf: $0) }
        entries.append(entry)
    }

    /// - Parameter texts: The entry's texts, one after the other.
    mutating func append(_ entry: AccessEntry, texts: UnsafeRawBufferPointer) {
        text.append(contentsOf: texts)
        entries.append(entry)
    }

    /// Calls `body` with each record, in order.
    package func forEach(_ body: (borrowing HTTPAccessRecord) -> Void) {
        text.withUnsafeBytes { text in
            var position = 0
            func next(_ length: UInt16) -> UnsafeRawBufferPointer {
                defer { position += Int(length) }
                return text.slice(position..<position + Int(length))
            }
            for entry in entries {
                let method = next(entry.methodLength)
                let target = next(entry.targetLength)
                let requestID = next(entry.requestIDLength)
                let cacheStatus = next(entry.cacheStatusLength)
                let referrer = next(entry.referrerLength)
                let userAgent = next(entry.userAgentLength)
                body(
                    HTTPAccessRecord(
                        client: entry.client, time: entry.time, duration: entry.duration, status: entry.status,
                        bytes: entry.bytes, isComplete: entry.isComplete, method: method, target: target,
                        requestID: requestID, cacheStatus: cacheStatus, referrer: referrer, userAgent: userAgent))
            }
        }
    }
}
