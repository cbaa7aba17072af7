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

    /// Notes the lengths in `entry` and appends the texts to `bytes`. A head has less than 64 KiB, or is cut here.
    func append(to bytes: inout [UInt8], lengthsIn entry: inout AccessEntry) {
        entry.methodLength = Self.append(method, to: &bytes)
        entry.targetLength = Self.append(target, to: &bytes)
        entry.requestIDLength = Self.append(requestID, to: &bytes)
        entry.cacheStatusLength = Self.append(cacheStatus, to: &bytes)
    }

    private static func append(_ text: UnsafeRawBufferPointer, to bytes: inout [UInt8]) -> UInt16 {
        let length = UInt16(clamping: text.count)
        text.slice(0..<Int(length)).withMemoryRebound(to: UInt8.self) { bytes.append(contentsOf: $0) }
        return length
    }
}
