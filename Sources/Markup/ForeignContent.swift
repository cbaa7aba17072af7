/// The nesting of SVG and MathML in a page. Their start tags do not begin raw text (HTML standard, section 13.2.6).
struct ForeignContent {
    /// Open elements that switch between HTML and foreign content: `svg`, `math` and integration points, whose content is HTML.
    private var contexts: [String] = []

    private static let roots: Set = ["svg", "math"]
    /// The integration points that need no attribute, by their root.
    private static let integrationPoints: [String: Set<String>] = [
        "svg": ["foreignobject", "desc", "title"], "math": ["mi", "mo", "mn", "ms", "mtext"],
    ]
    /// Start tags that end foreign content (section 13.2.6.5), for example after an unclosed `svg`.
    private static let breakouts: Set = [
        "b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed", "h1", "h2", "h3",
        "h4",
        "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta", "nobr", "ol", "p", "pre", "ruby", "s", "small",
        "span", "strong", "strike", "sub", "sup", "table", "tt", "u", "ul", "var",
    ]

    /// Whether the content at this point is foreign.
    private var isCurrent: Bool { contexts.last.map { Self.roots.contains($0) } ?? false }

    /// Whether a CDATA section may begin here. Most integration points contain only text, whose parent is a foreign element.
    var allowsSections: Bool { contexts.last.map { $0 != "foreignobject" } ?? false }

    /// Records a start tag and returns whether its element is foreign.
    mutating func open(_ tag: StartTag) -> Bool {
        if isCurrent, Self.breaksOut(tag) { end() }
        let isPoint = contexts.last.flatMap { Self.integrationPoints[$0] }?.contains(tag.name) ?? false
        let isForeign = isCurrent || Self.roots.contains(tag.name)
        if isPoint || Self.roots.contains(tag.name), !tag.isSelfClosing, contexts.count < HTMLTokenizer.maxDepth {
            contexts.append(tag.name)
        }
        return isForeign
    }

    /// Records an end tag.
    mutating func close(_ name: String) {
        if isCurrent, name == "p" || name == "br" { end() }
        if let index = contexts.lastIndex(of: name) { contexts.removeSubrange(index...) }
    }

    private static func breaksOut(_ tag: StartTag) -> Bool {
        if tag.name == "font" { return ["color", "face", "size"].contains { tag[$0] != nil } }
        return breakouts.contains(tag.name)
    }

    /// Leaves all foreign elements within the innermost integration point.
    private mutating func end() {
        while isCurrent { contexts.removeLast() }
    }
}
