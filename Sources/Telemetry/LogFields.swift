internal import Logging
internal import SystemIO

/// The values of one log line, which can be formatted as text or JSON.
struct LogFields {
    static let label = "gifreel"

    let level: Logger.Level
    let message: String
    let metadata: [String: LogValue]
    /// Milliseconds since 1970.
    var time = Int(TimeSource.system.unixMilliseconds)

    /// Returns the line with its line feed. No value can end the line or add control characters to it.
    ///
    /// - Parameter hasPriority: Whether the line begins with its level's priority, in the format of journald (sd-daemon(3)).
    func line(_ format: LogFormat, hasPriority: Bool = false) -> [UInt8] {
        let prefix = hasPriority ? Array("<\(priority)>".utf8) : []
        switch format {
        case .text: return prefix + text
        case .json: return prefix + json
        }
    }

    private var priority: Int {
        switch level {
        case .critical: 2
        case .error: 3
        case .warning: 4
        case .notice: 5
        case .info: 6
        case .debug, .trace: 7
        }
    }

    private var text: [UInt8] {
        var bytes: [UInt8] = []
        for scalar in "\(CivilTime.text(milliseconds: time)) \(level.rawValue) \(Self.label): \(message)".unicodeScalars {
            if scalar.isControl { bytes.append(0x20) } else { bytes.append(contentsOf: scalar.utf8) }
        }
        for (name, value) in metadata.sorted(by: { $0.key < $1.key }) {
            bytes.append(contentsOf: " \(name)=".utf8)
            switch value {
            case .number(let text): bytes.append(contentsOf: text.utf8)
            case .text(let text):
                if text.isWord { bytes.append(contentsOf: text.utf8) } else { Self.append(text, to: &bytes) }
            }
        }
        bytes.append(UInt8(ascii: "\n"))
        return bytes
    }

    private var json: [UInt8] {
        var members = metadata
        members["time"] = .text(CivilTime.text(milliseconds: time))
        members["level"] = .text(level.rawValue)
        members["message"] = .text(message)
        var bytes: [UInt8] = []
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            bytes.append(UInt8(ascii: bytes.isEmpty ? "{" : ","))
            Self.append(name, to: &bytes)
            bytes.append(UInt8(ascii: ":"))
            switch value {
            case .number(let text): bytes.append(contentsOf: text.utf8)
            case .text(let text): Self.append(text, to: &bytes)
            }
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
}

/// A value of a log line. The caller chooses the form: `"\(count)"` is text, and `.stringConvertible(count)` is a number.
enum LogValue: Equatable {
    case text(String)
    /// The text of a JSON number.
    case number(String)

    init(_ value: Logger.MetadataValue) {
        switch value {
        case .stringConvertible(let number as any BinaryInteger): self = .number(String(number))
        case .stringConvertible(let number as Double) where number.isFinite: self = .number(String(number))
        default: self = .text(value.description)
        }
    }
}

extension String {
    /// Whether the string needs no quotes in a text line.
    fileprivate var isWord: Bool {
        !isEmpty && unicodeScalars.allSatisfy { !$0.isControl && $0 != " " && $0 != "\"" && $0 != "=" && $0 != "\\" }
    }
}
