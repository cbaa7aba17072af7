internal import SystemIO

/// What the access log will say of a request: its numbers, and the lengths of its texts, which stand one after the other.
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

/// An entry whose answer is still being sent, with its texts.
struct AccessDraft: Sendable {
    var entry: AccessEntry
    var text: [UInt8]
}

/// The texts of an entry while they are at hand.
struct AccessTexts {
    let method: UnsafeRawBufferPointer
    let target: UnsafeRawBufferPointer
    let requestID: UnsafeRawBufferPointer
    let cacheStatus: UnsafeRawBufferPointer
    /// Empty unless ``HTTPServerConfiguration/recordsClientFields``.
    var referrer = UnsafeRawBufferPointer(start: nil, count: 0)
    var userAgent = UnsafeRawBufferPointer(start: nil, count: 0)

    /// Notes the lengths in `entry` and calls `body` with the texts, one after the other. A head has less than 64 KiB, or is
    /// cut here.
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
