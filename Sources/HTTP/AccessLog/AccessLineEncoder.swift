/// Puts the lines of the access log together, byte by byte: at full load it does so for every request.
struct AccessLineEncoder {
    private let format: HTTPAccessLogWriter.Format
    private(set) var bytes: [UInt8] = []
    private var second = Int.min
    private var timestamp: [UInt8] = []

    init(format: HTTPAccessLogWriter.Format) {
        self.format = format
    }

    mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    mutating func append(_ record: borrowing HTTPAccessRecord) {
        if record.time != second {
            second = record.time
            timestamp = Array(HTTPDate.formatForLog(second).utf8)
        }
        switch format {
        case .text: appendText(record)
        case .json: appendJSON(record)
        }
        bytes.append(10)
    }

    /// Notes that requests are missing.
    mutating func append(lost: Int) {
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
        bytes.append(contentsOf: timestamp)
        append(" ")
        append(record.client, else: "-")
        append(" \"")
        append(escaped: record.method, else: "-")
        append(" ")
        append(escaped: record.target, else: "-")
        append("\" ")
        append(record.status)
        append(" ")
        append(record.bytes)
        append(" ")
        append(milliseconds: record.duration)
        append(" ")
        append(escaped: record.requestID, else: "-")
        append(" \"")
        append(escaped: record.cacheStatus, else: "-")
        append(record.isComplete ? "\"" : "\" cut")
    }

    private mutating func appendJSON(_ record: borrowing HTTPAccessRecord) {
        append("{\"time\":\"")
        bytes.append(contentsOf: timestamp)
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
        append(",\"milliseconds\":")
        append(milliseconds: record.duration)
        append(",\"id\":\"")
        append(escaped: record.requestID)
        append("\",\"cache_status\":\"")
        append(escaped: record.cacheStatus)
        append(record.isComplete ? "\"}" : "\",\"cut\":true}")
    }

    private mutating func append(_ literal: StaticString) { bytes.append(contentsOf: literal.bytes) }

    private mutating func append(_ number: Int) {
        var digits: (UInt64, UInt64, UInt32) = (0, 0, 0)
        withUnsafeMutableBytes(of: &digits) { digits in
            var start = digits.count
            var rest = number
            repeat {
                start -= 1
                digits[start] = UInt8(truncatingIfNeeded: rest % 10) + 0x30
                rest /= 10
            } while rest > 0
            bytes.append(contentsOf: digits[start...])
        }
    }

    /// Microseconds as milliseconds with three decimals.
    private mutating func append(milliseconds microseconds: Int) {
        append(microseconds / 1000)
        append(".")
        let rest = microseconds % 1000
        if rest < 100 { append("0") }
        if rest < 10 { append("0") }
        append(rest)
    }

    private mutating func append(_ address: IPAddress?, else placeholder: StaticString) {
        guard let address else {
            append(placeholder)
            return
        }
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
            let count = address.write(to: buffer)
            bytes.append(contentsOf: UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: buffer[..<count])))
        }
    }

    /// Text in quotes: quotes and backslashes are escaped; what is not visible ASCII or a space becomes a question mark, so
    /// that no client can forge a line or send codes to a terminal.
    private mutating func append(escaped text: UnsafeRawBufferPointer, else placeholder: StaticString = "") {
        if text.isEmpty { append(placeholder) }
        for byte in text {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
            bytes.append(byte >= 0x20 && byte < 0x7F ? byte : UInt8(ascii: "?"))
        }
    }
}
