/// A video that replaces an image in a page.
package struct EmbeddedVideo: Equatable, Sendable {
    /// A file from which a browser may choose.
    package struct Source: Equatable, Sendable {
        package var url: String
        /// The media type, with codecs if they are known: `video/mp4; codecs="avc1.64001f"`.
        package var type: String

        package init(url: String, type: String) {
            self.url = url
            self.type = type
        }
    }

    /// The files, the preferred one first.
    package var sources: [Source]
    package var poster: String
    /// The size in pixels; nil if it is unknown.
    package var size: (width: Int, height: Int)?
    /// Whether the video is played again and again. False for a GIF that plays once.
    package var loops: Bool

    package init(sources: [Source], poster: String, size: (width: Int, height: Int)? = nil, loops: Bool = true) {
        self.sources = sources
        self.poster = poster
        self.size = size
        self.loops = loops
    }

    package static func == (one: EmbeddedVideo, other: EmbeddedVideo) -> Bool {
        one.sources == other.sources && one.poster == other.poster && one.loops == other.loops
            && one.size?.width == other.size?.width && one.size?.height == other.size?.height
    }

    /// Attributes of an image that have no meaning on a video, or that the video has from elsewhere.
    private static let dropped: Set = ["src", "srcset", "sizes", "alt", "decoding", "fetchpriority", "longdesc"]

    /// The element. All attributes with a value are valid in HTML and in XHTML.
    ///
    /// The image's other attributes are kept, as they are. Its text becomes the accessible name of the video, and what browsers
    /// without video show. It is no link: an `<a>` within a link ends the video and the link (HTML standard, section 13.2.6.4.7).
    func markup(replacing image: StartTag) -> [UInt8] {
        var names = Set<String>()
        let kept = image.attributes.filter { names.insert($0.name).inserted && !Self.dropped.contains($0.name) }
        var output = Array("<video autoplay=\"\"\(loops ? " loop=\"\"" : "") muted=\"\" playsinline=\"\"".utf8)
        Self.append("poster", AttributeText.escape(poster), &output)
        for attribute in kept {
            output += [UInt8(ascii: " ")] + attribute.text
            if attribute.lacksValue { output += "\"\"".utf8 }
        }
        if let size, image["width"] == nil, image["height"] == nil {
            Self.append("width", "\(size.width)".utf8, &output)
            Self.append("height", "\(size.height)".utf8, &output)
        }
        let text = image["alt"].map { AttributeText.requote($0.rawValue) }
        if let text, image["aria-label"] == nil, image["role"] == nil {
            if !text.isEmpty {
                Self.append("role", "img".utf8, &output)
                Self.append("aria-label", text, &output)
            } else if image["aria-hidden"] == nil {
                Self.append("aria-hidden", "true".utf8, &output)
            }
        }
        output += ">".utf8
        for source in sources {
            output += "<source".utf8
            Self.append("src", AttributeText.escape(source.url), &output)
            Self.append("type", AttributeText.escape(source.type), &output)
            output += "/>".utf8
        }
        output += text ?? []
        output += "</video>".utf8
        return output
    }

    private static func append(_ name: String, _ value: some Sequence<UInt8>, _ output: inout [UInt8]) {
        output += " \(name)=\"".utf8
        output += value
        output += [UInt8(ascii: "\"")]
    }
}

extension StartTag.Attribute {
    /// Whether the attribute ends with its equals sign, as the last one of a tag may. An attribute that follows would be its value.
    fileprivate var lacksValue: Bool {
        rawValue.isEmpty && text.dropFirst().last { !$0.isHTMLSpace } == UInt8(ascii: "=")
    }
}

/// Values of attributes, and texts, for a page of another site. It has any encoding that extends ASCII, so these are bytes, and only
/// bytes that have a meaning in HTML are replaced.
private enum AttributeText {
    /// Escapes everything that could end an attribute in double quotes, begin an element or begin a character reference (HTML
    /// standard, section 13.1.2).
    static func escape(_ text: String) -> [UInt8] {
        text.utf8.flatMap { $0 == UInt8(ascii: "&") ? Array("&amp;".utf8) : requote(CollectionOfOne($0)) }
    }

    /// Prepares the raw value of an attribute for double quotes and for text. Its character references stay, and so do bytes of
    /// any encoding that extends ASCII.
    static func requote(_ rawValue: some Sequence<UInt8>) -> [UInt8] {
        rawValue.flatMap { byte -> [UInt8] in
            switch byte {
            case UInt8(ascii: "<"): Array("&lt;".utf8)
            case UInt8(ascii: ">"): Array("&gt;".utf8)
            case UInt8(ascii: "\""): Array("&quot;".utf8)
            default: [byte]
            }
        }
    }
}
