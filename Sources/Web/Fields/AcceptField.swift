internal import Renditions

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
