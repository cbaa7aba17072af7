internal import Renditions
internal import Sandbox

// The request fields that this service evaluates, beside those of the HTTP engine.

/// The media ranges of a request's `Accept` fields (RFC 9110 section 12.5.1).
struct AcceptField {
    /// A media range with its weight in thousandths.
    private struct Range {
        var name: String
        var weight: Int
    }

    private let ranges: [Range]

    /// - Parameter values: The values of all `Accept` fields of the request.
    init(_ values: [String]) {
        ranges = ListField.elements(values).map { element in
            let weights = element.parameters.filter { $0.hasPrefix("q=") }.map { Self.weight($0.dropFirst(2)) }
            return Range(name: element.name, weight: weights.first ?? 1000)
        }
    }

    /// What a mount that negotiates sends to a client.
    enum Preference {
        case video
        case sequence
        case original
    }

    /// The answer of a mount that negotiates.
    ///
    /// The video and the image sequence have to be named with at least the weight of a GIF; of equals, the smaller format is
    /// sent. `*/*` and `image/*` name neither: browsers send them for `<img>` whatever they can show.
    ///
    /// WebKit sends `image/avif, video/*;q=0.8, image/*;q=0.8`. It decodes the video in hardware, so a video that is named by
    /// its wildcard is sent rather than the sequence. A client that names `video/mp4` itself has weighed it against the sequence.
    ///
    /// - Parameter offersSequence: Whether there is an image sequence to send.
    func preference(offersSequence: Bool) -> Preference {
        let original = weight(of: "image/gif", "image/*", "*/*") ?? 0
        let sequence = offersSequence ? weight(of: "image/avif") ?? 0 : 0
        let isSequenceAcceptable = sequence > 0 && sequence >= original
        if let video = weight(of: "video/mp4", "video/*"), video > 0, video >= original {
            let isWeighed = weight(of: "video/mp4") != nil
            if !isWeighed || !isSequenceAcceptable || video >= sequence { return .video }
        }
        return isSequenceAcceptable ? .sequence : .original
    }

    /// Whether the field names a stream of events. Wildcards do not name it: programs send them.
    var namesEvents: Bool { weight(of: "text/event-stream") ?? 0 > 0 }

    /// Whether the error of a page is sent as HTML instead of JSON. `*/*` does not name HTML: programs send it.
    var prefersPage: Bool {
        guard let page = weight(of: "text/html", "text/*"), page > 0 else { return false }
        let json = ["application/problem+json", "application/json"].compactMap { weight(of: $0, "application/*") }
        return page >= json.max() ?? 0
    }

    /// The weight of the most specific range in the field.
    ///
    /// - Parameter names: A media type and the wildcards that include it, the most specific first.
    /// - Returns: Thousandths; nil if the field has none of them.
    private func weight(of names: String...) -> Int? {
        for name in names {
            if let weight = ranges.filter({ $0.name == name }).map(\.weight).max() { return weight }
        }
        return nil
    }

    /// A weight with up to three decimals (RFC 9110 section 12.4.2) in thousandths. A malformed weight counts as 1, because the
    /// client names the range.
    private static func weight(_ text: Substring) -> Int {
        DecimalText.scaled(String(text), by: 1000).map { min($0, 1000) } ?? 1000
    }
}

/// The request field `Priority` (RFC 9218).
enum PriorityField {
    /// The urgency of the field's parameter `u`; a visitor's if the field has none, or only malformed ones.
    ///
    /// Reads the part of a structured dictionary (RFC 9651) that is needed: the last `u` that is a whole number from 0 to 7.
    static func urgency(_ value: String?) -> Urgency {
        var urgency = Urgency.visitor
        for member in (value ?? "").split(separator: ",") {
            let item = member.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }
            guard item.hasPrefix("u="), let level = Int(item.dropFirst(2)), (0...7).contains(level) else { continue }
            urgency = Urgency(level: level)
        }
        return urgency
    }
}

/// The request field `Prefer` (RFC 7240).
enum PreferField {
    /// Whether the client prefers an answer at once to one with the result.
    static func namesAsync(_ values: [String]) -> Bool {
        ListField.elements(values).contains { $0.name == "respond-async" }
    }
}

/// This service's name in `CDN-Loop` (RFC 8586). Fetches carry it, so a request that carries it was caused by a fetch of this
/// service.
struct LoopToken: Sendable {
    private let name: String

    /// - Parameter name: A token or a host.
    init(_ name: String) {
        self.name = name.lowercased()
    }

    /// Whether an element of the fields' values has the name.
    func occurs(in values: [String]) -> Bool {
        ListField.elements(values).contains { $0.name == name }
    }
}

/// Parses fields whose values are lists with parameters (RFC 9110 sections 5.6.1 and 5.6.6).
enum ListField {
    /// An element: the text before its first semicolon, and its parameters, all without blanks and in lower case.
    struct Element: Equatable {
        var name: String
        var parameters: [String]
    }

    /// The elements of the values of all fields of one name. Separators in quotes do not separate.
    static func elements(_ values: [String]) -> [Element] {
        values.flatMap { value in
            split(value[...], at: ",").map { element in
                let parts = split(element, at: ";").map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
                return Element(name: parts[0], parameters: Array(parts.dropFirst()))
            }
        }
    }

    private static func split(_ text: Substring, at separator: Character) -> [Substring] {
        var parts: [Substring] = []
        var start = text.startIndex
        var isQuoted = false
        var isEscaped = false
        for index in text.indices {
            let character = text[index]
            if isEscaped {
                isEscaped = false
            } else if isQuoted && character == "\\" {
                isEscaped = true
            } else if character == "\"" {
                isQuoted.toggle()
            } else if character == separator && !isQuoted {
                parts.append(text[start..<index])
                start = text.index(after: index)
            }
        }
        return parts + [text[start...]]
    }
}
