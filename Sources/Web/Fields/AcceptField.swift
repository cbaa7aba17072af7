internal import HTTP
internal import Media
internal import Renditions

/// The media ranges of a request's `Accept` fields (RFC 9110 section 12.5.1) that affect a response.
///
/// Reads the bytes of the fields once and allocates nothing, because the path of a negotiated hit uses it.
struct AcceptField {
    /// A media range on which some response depends.
    private enum MediaRange: Int {
        case mp4, webm, quickTime, anyVideo, avif, heic, webp, gif, png, apng, anyImage, any, html, anyText, plain, events,
            problem, json, anyApplication, openMetrics

        init?(_ name: UnsafeRawBufferPointer) {
            func named(_ ranges: (MediaRange, StaticString)...) -> MediaRange? {
                for (range, text) in ranges where name.equalsIgnoringCase(text) { return range }
                return nil
            }
            let range: MediaRange? =
                switch name.count {
                case 3: named((.any, "*/*"))
                case 6: named((.anyText, "text/*"))
                case 7: named((.anyImage, "image/*"), (.anyVideo, "video/*"))
                case 9: named((.mp4, "video/mp4"), (.gif, "image/gif"), (.png, "image/png"), (.html, "text/html"))
                case 10:
                    named(
                        (.avif, "image/avif"), (.heic, "image/heic"), (.webp, "image/webp"), (.apng, "image/apng"),
                        (.webm, "video/webm"), (.plain, "text/plain"))
                case 13: named((.anyApplication, "application/*"))
                case 15: named((.quickTime, "video/quicktime"))
                case 16: named((.json, "application/json"))
                case 17: named((.events, "text/event-stream"))
                case 24: named((.problem, "application/problem+json"))
                case 28: named((.openMetrics, "application/openmetrics-text"))
                default: nil
                }
            guard let range else { return nil }
            self = range
        }
    }

    /// The weight of each range in thousandths; -1 if the field lacks it.
    private var weights = InlineArray<20, Int16>(repeating: -1)
    /// Whether the field names an image type, as in requests for `<img>`.
    private var namesImages = false
    /// Whether the field has no elements, so that it accepts everything.
    private var isEmpty = true

    init(_ request: borrowing HTTPRequest) {
        request.forEachValue(of: "Accept") { add($0) }
    }

    init() {}

    /// Adds the elements of one field. Of repeated ranges, the one with the highest weight counts.
    mutating func add(_ value: UnsafeRawBufferPointer) {
        for bytes in FieldList(value) {
            let element = FieldElement(bytes)
            isEmpty = false
            let weight = element.parameter("q").map(Self.weight) ?? 1000
            if weight > 0, !namesImages, Self.isImage(element.value) { namesImages = true }
            guard let range = MediaRange(element.value) else { continue }
            weights[range.rawValue] = max(weights[range.rawValue], weight)
        }
    }

    private static func isImage(_ name: UnsafeRawBufferPointer) -> Bool {
        name.count > 6 && name.slice(0..<6).equalsIgnoringCase("image/")
    }

    /// The choice of a mount that negotiates.
    enum Preference {
        case video
        case avif
        case webp
        case original
    }

    /// Selects the response of a mount that negotiates.
    ///
    /// The video or an image sequence is selected only if the field names it with at least the weight of a GIF. Of formats with
    /// the same weight, the smaller is sent: AVIF before WebP. `*/*` and `image/*` name none: browsers send them for `<img>`
    /// whatever they can show.
    ///
    /// WebKit sends `image/avif, video/*;q=0.8, image/*;q=0.8`. It decodes the video in hardware, so a video that is named by
    /// its wildcard is sent rather than the sequence. A client that names `video/mp4` itself has weighed it against the
    /// sequence.
    ///
    /// - Parameter offersVideo: Whether there is a video to send. A video has no transparency.
    func preference(offersAVIF: Bool, offersWebP: Bool, offersVideo: Bool = true) -> Preference {
        let original = weight(.gif) ?? weight(.anyImage) ?? weight(.any) ?? 0
        let avif = offersAVIF ? weight(.avif) ?? 0 : 0
        let webp = offersWebP ? weight(.webp) ?? 0 : 0
        let sequence = max(avif, webp)
        let isSequenceAcceptable = sequence > 0 && sequence >= original
        if offersVideo, let video = weight(.mp4) ?? weight(.anyVideo), video > 0, video >= original {
            let isWeighed = weight(.mp4) != nil
            if !isWeighed || !isSequenceAcceptable || video >= sequence { return .video }
        }
        guard isSequenceAcceptable else { return .original }
        return avif == sequence ? .avif : .webp
    }

    /// Selects the response for a client that would get a video, by the facts of the source.
    ///
    /// A video has no transparency. In `<img>`, WebKit repeats a video and an AVIF without end, whatever the file states: a source
    /// that ends is an animated WebP. WebKitGTK and WPE show only the first picture of a video. They name the same formats as Safari
    /// 16; later versions also name HEIC.
    func preference(insteadOfVideo source: SourceFacts, offersAVIF: Bool, offersWebP: Bool) -> Preference {
        let repeats = source.loopCount == 0 || !namesImages
        let isPlayed = weight(.mp4) != nil || weight(.heic) != nil || weight(.avif) == nil || weight(.webp) == nil
        return preference(
            offersAVIF: offersAVIF && repeats, offersWebP: offersWebP,
            offersVideo: repeats && isPlayed && !source.transparent)
    }

    /// Whether the source itself may be the response.
    ///
    /// Every client that shows images shows GIFs and PNGs, so only a weight of zero refuses these; caches reduce `Accept` to
    /// the one format that they select. `<img>` shows MP4 at most, although browsers send `*/*` and WebKit `video/*` for it:
    /// other videos have to be named, unless the client names no images.
    func accepts(_ source: SourceFormat) -> Bool {
        let (exact, family): (Int16?, MediaRange) =
            switch source {
            case .gif: (weight(.gif), .anyImage)
            case .apng: ([weight(.png), weight(.apng)].compactMap(\.self).max(), .anyImage)
            case .webp: (weight(.webp), .anyImage)
            case .avif: (weight(.avif), .anyImage)
            case .mp4: (weight(.mp4), .anyVideo)
            case .mov: (weight(.quickTime), .anyVideo)
            case .webm: (weight(.webm), .anyVideo)
            }
        if let exact { return exact > 0 }
        if source.isVideo, namesImages { return source == .mp4 && weight(.anyVideo) ?? 0 > 0 }
        if let weight = weight(family) ?? weight(.any) { return weight > 0 }
        return isEmpty || source == .gif || source == .apng
    }

    /// Whether the field names a stream of events with at least the weight of JSON. Wildcards do not name the stream: programs
    /// send them.
    var prefersEvents: Bool {
        guard let events = weight(.events), events > 0 else { return false }
        return events >= weight(.json) ?? anyApplication
    }

    /// Whether the error of a page is sent as HTML instead of JSON. `*/*` does not name HTML: programs send it.
    var prefersPage: Bool {
        guard let page = weight(.html) ?? weight(.anyText), page > 0 else { return false }
        return page >= max(weight(.problem) ?? anyApplication, weight(.json) ?? anyApplication)
    }

    /// The weight of JSON documents that the field does not name.
    private var anyApplication: Int16 { weight(.anyApplication) ?? weight(.any) ?? 0 }

    /// Whether the metrics are sent as OpenMetrics: only if the client names it with at least the weight of plain text.
    var prefersOpenMetrics: Bool {
        guard let openMetrics = weight(.openMetrics), openMetrics > 0 else { return false }
        return openMetrics >= max(weight(.plain) ?? 0, weight(.anyText) ?? 0, weight(.any) ?? 0)
    }

    /// The weight of a range in thousandths; nil if the field does not have it.
    private func weight(_ range: MediaRange) -> Int16? {
        let weight = weights[range.rawValue]
        return weight < 0 ? nil : weight
    }

    /// A weight (RFC 9110 section 12.4.2) in thousandths. A malformed weight counts as 1, because the client names the range.
    /// Decimals after the third are ignored.
    private static func weight(_ text: UnsafeRawBufferPointer) -> Int16 {
        guard text.first == UInt8(ascii: "0"), text.count == 1 || text[1] == UInt8(ascii: ".") else { return 1000 }
        var weight: Int16 = 0
        var unit: Int16 = 100
        for byte in text.dropFirst(2) {
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return 1000 }
            weight += Int16(byte - UInt8(ascii: "0")) * unit
            unit /= 10
        }
        return weight
    }
}
