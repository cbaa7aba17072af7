internal import SystemIO

/// Encodes access log lines. Works on bytes, because at full load it encodes a line for every request.
struct AccessLineEncoder {
    private let format: LogFormat
    private let includesClientFields: Bool
    private let output = OutputBuffer(capacity: 128 * 1024)
    /// The time of the previous line in milliseconds, and its text. Most lines change only the milliseconds.
    private var time = Int.min
    private var timestamp: [UInt8] = []
    /// The address of the previous line, and its text. Behind a proxy, all requests may have the same address.
    private var latest: (address: IPAddress, text: [UInt8])?

    init(format: LogFormat, includesClientFields: Bool = false) {
        self.format = format
        self.includesClientFields = includesClientFields
    }

    /// The lines so far, valid until the next modification.
    var bytes: UnsafeRawBufferPointer { output.bytes }

    func removeAll() { output.removeAll() }

    mutating func append(_ record: borrowing HTTPAccessRecord) {
        setTime(record.time)
        switch format {
        case .text: appendText(record)
        case .json: appendJSON(record)
        }
        output.append(byte: 10)
    }

    private mutating func setTime(_ next: Int) {
        guard next != time else { return }
        if next >= 0, time >= 0, next / 1000 == time / 1000 {
            let fraction = next % 1000
            for (digit, value) in [fraction / 100, fraction / 10 % 10, fraction % 10].enumerated() {
                timestamp[timestamp.count - 4 + digit] = UInt8(ascii: "0") + UInt8(value)
            }
        } else {
            timestamp = Array(CivilTime.text(milliseconds: next).utf8)
        }
        time = next
    }

    /// Appends a line that reports the number of missing requests.
    func append(lost: Int) {
        switch format {
        case .text:
            append("- - \"- -\" ")
            append(lost)
            append(" requests not logged\n")
        case .json:
            append("{\"lost\":")
            append(lost)
            append("}\n")
        }
    }

    private mutating func appendText(_ record: borrowing HTTPAccessRecord) {
        output.append(timestamp)
        output.append(byte: 0x20)
        append(record.client, else: "-")
        append(" \"")
        append(escaped: record.method, else: "-")
        output.append(byte: 0x20)
        append(escaped: record.target, else: "-")
        append("\" ")
        append(record.status)
        output.append(byte: 0x20)
        append(record.bytes)
        output.append(byte: 0x20)
        append(milliseconds: record.duration)
        output.append(byte: 0x20)
        append(escaped: record.requestID, else: "-")
        append(" \"")
        append(escaped: record.cacheStatus, else: "-")
        if includesClientFields {
            append("\" \"")
            append(escaped: record.referrer, else: "-")
            append("\" \"")
            append(escaped: record.userAgent, else: "-")
        }
        append(record.isComplete ? "\"" : "\" cut")
    }

    private mutating func appendJSON(_ record: borrowing HTTPAccessRecord) {
        append("{\"time\":\"")
        output.append(timestamp)
        append("\",\"client\":\"")
        append(record.client, else: "")
        append("\",\"method\":\"")
        append(escaped: record.method)
        append("\",\"target\":\"")
        append(escaped: record.target)
        append("\",\"status\":")
        append(record.status)
        append(",\"bytes\":")
        append(record.bytes)
        append(",\"duration_ms\":")
        append(milliseconds: record.duration)
        append(",\"request_id\":\"")
        append(escaped: record.requestID)
        append("\",\"cache_status\":\"")
        append(escaped: record.cacheStatus)
        if includesClientFields {
            append("\",\"referer\":\"")
            append(escaped: record.referrer)
            append("\",\"user_agent\":\"")
            append(escaped: record.userAgent)
        }
        append(record.isComplete ? "\"}" : "\",\"cut\":true}")
    }

    @inline(__always)
    private func append(_ literal: StaticString) { output.append(literal) }

    private func append(_ number: Int) { output.append(decimal: number) }

    /// Appends nonnegative microseconds as milliseconds with three decimals.
    private func append(milliseconds microseconds: Int) {
        append(microseconds / 1000)
        let rest = microseconds % 1000
        output.append(byte: UInt8(ascii: "."))
        output.append(byte: UInt8(ascii: "0") + UInt8(rest / 100))
        output.append(byte: UInt8(ascii: "0") + UInt8(rest / 10 % 10))
        output.append(byte: UInt8(ascii: "0") + UInt8(rest % 10))
    }

    private mutating func append(_ address: IPAddress?, else placeholder: StaticString) {
        guard let address else {
            append(placeholder)
            return
        }
        if let latest, latest.address == address {
            output.append(latest.text)
            return
        }
        let start = output.count
        output.append(address)
        latest = (address, Array(output.bytes.slice(start..<output.count)))
    }

    /// Appends text for use within quotes. Escapes quotes and backslashes, and replaces bytes other than visible ASCII and
    /// spaces with question marks, so that no client can forge a line or send control codes to a terminal.
    private func append(escaped text: UnsafeRawBufferPointer, else placeholder: StaticString = "") {
        if text.isEmpty { append(placeholder) }
        if text.isPlainText {
            output.append(text)
            return
        }
        for byte in text {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { output.append(byte: UInt8(ascii: "\\")) }
            output.append(byte: byte >= 0x20 && byte < 0x7F ? byte : UInt8(ascii: "?"))
        }
    }
}

extension UnsafeRawBufferPointer {
    /// Whether the bytes need no escaping.
    fileprivate var isPlainText: Bool {
        guard count >= 8 else {
            return allSatisfy { $0 >= 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
        }
        func marks(_ word: ByteWord) -> UInt64 {
            word.equal(to: UInt8(ascii: "\"")) | word.equal(to: UInt8(ascii: "\\")) | word.outsideASCII(from: 0x20)
        }
        // The last word may overlap the previous one.
        return marks(ByteWord(self, at: count - 8)) == 0 && ByteWord.firstMark(in: self, from: 0, marks) > count - 8
    }
}
