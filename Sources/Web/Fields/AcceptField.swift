internal import Renditions

/// The media ranges of a request's `Accept` fields (RFC 9110 section 12.5.1).
struct AcceptField {
    /// A media range with its weight in thousandths.
    private struct Range {
        var name: String
        var weight: Int
    }

    private let ranges: [Range]

    /// - Parameter values: The values of all `Accept` fields; empty where the request has none.
    init(_ values: [String]) {
        ranges = ListField.elements(values).map { element in
            let weights = element.parameters.filter { $0.hasPrefix("q=") }.map { Self.weight($0.dropFirst(2)) }
            return Range(name: element.name, weight: weights.first ?? 1000)
        }
    }

    /// Whether a mount that negotiates answers with the video instead of the GIF.
    ///
    /// `*/*` does not count as naming the video: browsers send it for `<img>` although they show no video there. Where both
    /// are welcome alike, the video is the answer, because it is smaller.
    var prefersVideo: Bool {
        guard let video = weight(of: "video/mp4", "video/*"), video > 0 else { return false }
        return video >= weight(of: "image/gif", "image/*", "*/*") ?? 0
    }

    /// Whether an error of a page is answered as a page instead of as JSON. As with the video, `*/*` does not count:
    /// programs send it.
    var prefersPage: Bool {
        guard let page = weight(of: "text/html", "text/*"), page > 0 else { return false }
        let json = ["application/problem+json", "application/json"].compactMap { weight(of: $0, "application/*") }
        return page >= json.max() ?? 0
    }

    /// The weight of the most specific range that the field holds.
    ///
    /// - Parameter names: A media type and the wildcards above it, the most specific first.
    /// - Returns: Thousandths; nil where the field holds none of them.
    private func weight(of names: String...) -> Int? {
        for name in names {
            if let weight = ranges.filter({ $0.name == name }).map(\.weight).max() { return weight }
        }
        return nil
    }

    /// A weight with up to three decimals (RFC 9110 section 12.4.2) in thousandths. One that is malformed counts as 1: the
    /// client did name the range.
    private static func weight(_ text: Substring) -> Int {
        DecimalText.scaled(String(text), by: 1000).map { min($0, 1000) } ?? 1000
    }
}
