package import SystemIO

/// An observer of finished requests.
package protocol HTTPObserver: Sendable {
    /// Receives the requests that were answered or aborted since the last call.
    ///
    /// Called on a dedicated server thread. During a call, batches beyond a bound are dropped and counted.
    func requestsFinished(_ batch: HTTPAccessBatch)

    /// Receives requests that were dropped before ``requestsFinished(_:)`` because the observer was too slow. Per-client limits
    /// must count them. Called on loop threads; must not block.
    func requestsDropped(_ batch: HTTPAccessBatch)
}

extension HTTPObserver {
    package func requestsDropped(_ batch: HTTPAccessBatch) {}
}

/// A finished request, as a view of its batch.
package struct HTTPAccessRecord: ~Copyable {
    /// The client, from a trusted proxy or the connection; nil for an untrusted peer on a Unix socket.
    package let client: IPAddress?
    /// When the request finished, in milliseconds since 1970.
    package let time: Int
    /// Microseconds from the complete head to the last byte that the kernel accepted.
    package let duration: Int
    /// The response status; 0 if the client left before the response.
    package let status: Int
    /// Bytes of the response body that the kernel accepted.
    package let bytes: Int
    /// Whether the kernel accepted the whole response.
    package let isComplete: Bool
    /// The method; empty if the request line could not be parsed. Like all buffers here, it is valid only during the call.
    package let method: UnsafeRawBufferPointer
    /// The target; empty if the request line could not be parsed.
    package let target: UnsafeRawBufferPointer
    package let requestID: UnsafeRawBufferPointer
    /// The response's `Cache-Status`; empty if absent.
    package let cacheStatus: UnsafeRawBufferPointer
    /// The value of `Referer`; empty if absent or without ``HTTPServerConfiguration/recordsClientFields``.
    package let referrer: UnsafeRawBufferPointer
    /// The value of `User-Agent`; empty if absent or without ``HTTPServerConfiguration/recordsClientFields``.
    package let userAgent: UnsafeRawBufferPointer
}

/// Finished requests of one loop, in order. Their texts share one array, so that a request needs no allocation.
package struct HTTPAccessBatch: Sendable {
    private(set) var entries: [AccessEntry] = []
    private(set) var text: [UInt8] = []
    private var responseBytes = 0
    /// The number of requests missing because the observer was too slow.
    package let lost: Int

    /// The number of requests in the batch.
    package var count: Int { entries.count }

    var isFull: Bool {
        entries.count >= AccessRecorder.batchSize || text.count >= AccessRecorder.batchText
            || responseBytes >= AccessRecorder.batchResponses
    }

    /// Bytes of memory held by the batch.
    var memory: Int { entries.capacity * MemoryLayout<AccessEntry>.stride + text.capacity }

    init(lost: Int = 0) {
        self.lost = lost
        guard lost == 0 else { return }
        entries.reserveCapacity(AccessRecorder.batchSize)
        text.reserveCapacity(AccessRecorder.batchText)
    }

    mutating func append(_ entry: AccessEntry, _ texts: AccessTexts) {
        var entry = entry
        texts.forEach(lengthsIn: &entry) { text.append(contentsOf: $0) }
        entries.append(entry)
        responseBytes += entry.bytes
    }

    /// - Parameter texts: The entry's texts, concatenated.
    mutating func append(_ entry: AccessEntry, texts: UnsafeRawBufferPointer) {
        text.append(contentsOf: texts)
        entries.append(entry)
        responseBytes += entry.bytes
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

/// A request's access log entry: its numbers, and the lengths of its texts, which are stored contiguously.
struct AccessEntry: Sendable {
    var client: IPAddress?
    var time = 0
    var duration = 0
    var status = 0
    var bytes = 0
    var isComplete = true
    var methodLength: UInt16 = 0
    var targetLength: UInt16 = 0
    var requestIDLength: UInt16 = 0
    var cacheStatusLength: UInt16 = 0
    var referrerLength: UInt16 = 0
    var userAgentLength: UInt16 = 0
}

/// The entry of a response that is still being sent, with its texts.
struct AccessDraft: Sendable {
    var entry: AccessEntry
    var text: [UInt8]
}

/// The texts of an entry, as views of their original buffers.
struct AccessTexts {
    let method: UnsafeRawBufferPointer
    let target: UnsafeRawBufferPointer
    let requestID: UnsafeRawBufferPointer
    let cacheStatus: UnsafeRawBufferPointer
    /// Empty without ``HTTPServerConfiguration/recordsClientFields``.
    var referrer = UnsafeRawBufferPointer(start: nil, count: 0)
    var userAgent = UnsafeRawBufferPointer(start: nil, count: 0)

    /// Stores the lengths in `entry` and calls `body` with each text. Texts are truncated to 64 KiB.
    func forEach(lengthsIn entry: inout AccessEntry, _ body: (UnsafeRawBufferPointer) -> Void) {
        func take(_ text: UnsafeRawBufferPointer) -> UInt16 {
            let length = UInt16(clamping: text.count)
            body(text.slice(0..<Int(length)))
            return length
        }
        entry.methodLength = take(method)
        entry.targetLength = take(target)
        entry.requestIDLength = take(requestID)
        entry.cacheStatusLength = take(cacheStatus)
        entry.referrerLength = take(referrer)
        entry.userAgentLength = take(userAgent)
    }
}
