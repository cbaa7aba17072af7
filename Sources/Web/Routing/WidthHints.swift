internal import HTTP
internal import Renditions

/// The fields in which a browser states the display width of an image (client hints, RFC 8942), for `width=auto`.
struct WidthHints: Sendable, Equatable {
    /// The widths of renditions, in pixels. Few, because each is a cache entry of its own.
    static let steps = [160, 320, 480, 640, 960, 1280, 1920, 2560, 3840]

    /// The names of the hints, for `Vary` of responses that depend on them and `Accept-CH` of pages.
    static let names = "Sec-CH-Width, Sec-CH-DPR, Sec-CH-Viewport-Width"

    /// The smallest step that fills the image; nil without a usable hint.
    let width: Int?

    /// - Parameter field: The value of a request's field.
    init(_ field: (HTTPFieldName) -> String?) {
        self.init(
            width: field("Sec-CH-Width"), ratio: field("Sec-CH-DPR"), viewport: field("Sec-CH-Viewport-Width"))
    }

    /// - Parameters:
    ///   - width: The width of the image in device pixels.
    ///   - ratio: Device pixels per CSS pixel.
    ///   - viewport: The width of the viewport in CSS pixels; it bounds an image of unknown width.
    init(width: String?, ratio: String?, viewport: String?) {
        let known = width.flatMap(Self.thousandths)
        let bound = viewport.flatMap(Self.thousandths).map { viewport in
            viewport / 1000 * (ratio.flatMap(Self.thousandths) ?? 1000)
        }
        self.width = (known ?? bound).map { pixels in Self.steps.first { $0 * 1000 >= pixels } ?? 3840 }
    }

    /// Returns a positive number in thousandths, at most a million; nil for other texts.
    private static func thousandths(_ text: String) -> Int? {
        DecimalText.scaled(text, by: 1000).flatMap { $0 > 0 ? min($0, 1_000_000_000) : nil }
    }
}

extension ParsedTarget {
    /// Returns the target with its client's width, if it has `width=auto`.
    func resolved(_ hints: WidthHints) -> ParsedTarget {
        guard hasAutomaticWidth, let width = hints.width else { return self }
        var target = self
        switch route {
        // The browser sends the hints with its requests for the video and the poster.
        case .rendition(let rendition, _) where rendition.format == .html: return self
        case .rendition(let rendition, let source): target.route = .rendition(rendition.ofWidth(width), source)
        case .upload(let rendition): target.route = .upload(rendition.ofWidth(width))
        default: return self
        }
        if negotiation != nil, case .rendition(let rendition, _) = target.route { target.negotiation = Negotiation(rendition) }
        return target
    }
}
