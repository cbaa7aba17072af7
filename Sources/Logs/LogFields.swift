internal import Glibc
internal import Logging
internal import SystemIO

/// The values of one log line, and their two forms.
struct LogFields {
    static let label = "gifreel"

    let level: Logger.Level
    let message: String
    let metadata: [String: String]
    /// Seconds since 1970.
    var time = Glibc.time(nil)

    /// The line with its line feed. No value can end the line or add control characters to it.
    func line(_ format: LogOutput.Format) -> [UInt8] {
        switch format {
        case .text: text
        case .json: json
        }
    }

    private var text: [UInt8] {
        var line = "\(timestamp) \(level.rawValue) \(Self.label): \(message)"
        for (name, value) in metadata.sorted(by: { $0.key < $1.key }) { line += " \(name)=\(value)" }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(line.utf8.count + 1)
        for scalar in line.unicodeScalars {
            if scalar.isControl { bytes.append(0x20) } else { bytes.append(contentsOf: scalar.utf8) }
        }
        bytes.append(UInt8(ascii: "\n"))
        return bytes
    }

    private var json: [UInt8] {
        var members = metadata
        members["time"] = timestamp
        members["level"] = level.rawValue
        members["message"] = message
        var bytes: [UInt8] = []
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            bytes.append(UInt8(ascii: bytes.isEmpty ? "{" : ","))
            Self.append(name, to: &bytes)
            bytes.append(UInt8(ascii: ":"))
            Self.append(value, to: &bytes)
        }
        bytes.append(contentsOf: "}\n".utf8)
        return bytes
    }

    /// Appends a JSON string (RFC 8259 section 7).
    private static func append(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\":
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(contentsOf: scalar.utf8)
            case "\n": bytes.append(contentsOf: "\\n".utf8)
            case "\t": bytes.append(contentsOf: "\\t".utf8)
            case _ where scalar.isControl:
                bytes.append(contentsOf: "\\u00\(Hex.encode([UInt8(truncatingIfNeeded: scalar.value)]))".utf8)
            default: bytes.append(contentsOf: scalar.utf8)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// The form of RFC 3339 in UTC: `1994-11-06T08:49:37Z`.
    private var timestamp: String {
        var seconds = time
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func digits(_ value: Int32, _ width: Int = 2) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
        }
        let date = "\(digits(parts.tm_year + 1900, 4))-\(digits(parts.tm_mon + 1))-\(digits(parts.tm_mday))"
        return "\(date)T\(digits(parts.tm_hour)):\(digits(parts.tm_min)):\(digits(parts.tm_sec))Z"
    }
}

extension Unicode.Scalar {
    /// Whether it is a control character: C0, DEL or C1.
    fileprivate var isControl: Bool { value < 0x20 || (0x7F...0x9F).contains(value) }
}
