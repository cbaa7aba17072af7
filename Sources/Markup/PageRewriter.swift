internal import Foundation

/// A rewriter that replaces the addresses of animations in an HTML page: of GIFs, or of images in formats that the caller
/// names. All other bytes stay unchanged.
///
/// The elements stay, so that style sheets and scripts find what they expect. Addresses are read from `src` and `srcset` of
/// images, from `source` elements within `picture`, from the attributes of lazy loaders, and from preloads of images.
package struct PageRewriter {
    /// The outcome for a link.
    package enum Decision: Equatable, Sendable {
        /// The link becomes `address`. `still` is the address of a still picture; nil if scripts can derive it.
        case replace(address: String, still: String? = nil)
        /// The link stays, for a reason such as “is a still picture”.
        case stay(String)
    }

    /// A link that stays.
    package struct Remainder: Hashable, Sendable {
        /// The link as the page contains it.
        package let link: String
        package let reason: String
    }

    /// A rewritten page.
    package struct Page: Equatable, Sendable {
        package var bytes: [UInt8] = []
        /// The number of elements with a new address.
        package var changed = 0
        /// The links to animations that stay, each once.
        package var remaining: [Remainder] = []
        /// Whether the page contains the script; true if no script was requested.
        package var hasScript = false
    }

    /// Decides about an absolute URL. May block.
    package typealias Decisions = (_ url: String) -> Decision

    /// The attributes in which lazy loaders keep the address of an image. gifreel.js uses the same list.
    package static let lazyNames: Set<String> = Set(
        ["", "lazy", "lazy-"].flatMap { start in
            ["src", "srcset", "original", "original-set", "lazy", "load", "echo", "gif"].map { "data-\(start)\($0)" }
        })
    /// Elements that show their content as a fallback.
    private static let owners: Set = ["video", "audio", "object", "canvas"]

    private let decide: Decisions
    /// The extensions with their dots.
    private let extensions: [String]
    /// The element that is inserted before the end of the body; nil for none.
    private let script: String?
    private var base: URL?
    private var hasBaseElement = false
    /// The outermost open owner and the elements that were opened within it.
    private var openFallback: [String] = []
    private var openPictures = 0
    private var page = Page()
    private var noted: Set<Remainder> = []

    /// - Parameters:
    ///   - base: The page's URL, which resolves relative links unless the page has a `<base>`.
    ///   - extensions: The extensions of images that are considered, in lower case.
    ///   - script: The tag of gifreel.js, which a page with a new address needs before `</body>`; nil for none.
    private init(base: String?, extensions: [String], script: String?, decide: @escaping Decisions) {
        self.base = base.flatMap { URL(string: $0) }
        self.extensions = extensions.map { ".\($0)" }
        self.script = script
        self.decide = decide
    }

    /// Rewrites a page. See ``init(base:extensions:script:decide:)``.
    package static func rewrite(
        _ page: [UInt8], base: String? = nil, extensions: [String] = ["gif"], script: String? = nil,
        decide: @escaping Decisions
    ) -> Page {
        var rewriter = PageRewriter(base: base, extensions: extensions, script: script, decide: decide)
        rewriter.page.hasScript = script == nil
        var tokenizer = HTMLTokenizer()
        let tokens = tokenizer.append(page) + tokenizer.finish()
        for (index, token) in tokens.enumerated() {
            let isLastEnd = { tokens[(index + 1)...].allSatisfy { if case .endTag("body", _) = $0 { false } else { true } } }
            rewriter.take(token, isLastEnd: isLastEnd)
        }
        return rewriter.page
    }

    private mutating func take(_ token: HTMLTokenizer.Token, isLastEnd: () -> Bool) {
        switch token {
        case .text(let text):
            page.bytes += text
        case .endTag(let name, let text):
            if let index = openFallback.lastIndex(of: name) {
                openFallback.removeSubrange(index...)
            } else if !openFallback.contains("object") {
                // The end tag of an element around an unclosed `<video …/>` closes the video too. An object stays open.
                openFallback = []
            }
            if name == "picture" { openPictures = max(0, openPictures - 1) }
            if name == "body", !page.hasScript, page.changed > 0, let script, isLastEnd() {
                page.bytes += script.utf8
                page.hasScript = true
            }
            page.bytes += text
        case .startTag(let tag):
            if let changed = rewritten(tag) {
                page.bytes += changed
                page.changed += 1
            } else {
                page.bytes += tag.text
            }
            if !openFallback.isEmpty || Self.owners.contains(tag.name), openFallback.count < HTMLTokenizer.maxDepth {
                openFallback.append(tag.name)
            }
            if tag.name == "picture" { openPictures += 1 }
            if tag.name == "base" { use(tag) }
            if tag.name == "script", let link = tag["src"]?.value, Self.isOwnScript(link) { page.hasScript = true }
        }
    }

    /// Whether a link leads to gifreel.js. Publishing systems append versions as queries.
    private static func isOwnScript(_ link: String) -> Bool {
        link.prefix { $0 != "?" && $0 != "#" }.split(separator: "/").last == "gifreel.js"
    }

    /// The first `<base>` with an address counts (HTML standard, section 4.2.3).
    private mutating func use(_ tag: StartTag) {
        guard !hasBaseElement, let href = tag["href"] else { return }
        hasBaseElement = true
        guard let link = LinkText.normalize(href.value) else {
            base = nil
            return
        }
        base = URL(string: LinkText.encode(link), relativeTo: base)?.absoluteURL ?? base
    }

    // MARK: Elements

    private static func preloadsImage(_ tag: StartTag) -> Bool {
        let types = tag["rel"]?.value.lowercased().split(whereSeparator: \.isWhitespace) ?? []
        return types.contains("preload") && tag["as"]?.value.lowercased() == "image"
    }

    private mutating func rewritten(_ tag: StartTag) -> [UInt8]? {
        var names: [String]
        switch tag.name {
        case "img": names = ["src", "srcset"] + Self.lazyNames
        case "source" where openPictures > 0: names = ["srcset"] + Self.lazyNames
        case "link" where Self.preloadsImage(tag): names = ["href", "imagesrcset"]
        default: return nil
        }
        let reason = reasonToStay(tag)
        var still: String?
        var changes: [(attribute: StartTag.Attribute, value: String)] = []
        for attribute in tag.attributes where names.contains(attribute.name) {
            names.removeAll { $0 == attribute.name }
            let value = attribute.value
            guard !CharacterReferences.remain(in: value) || !attribute.name.hasSuffix("set") else {
                for link in SourceSet.links(value) where isAnimation(link) { note(link, "its address is uncertain") }
                continue
            }
            let changed =
                attribute.name.hasSuffix("set")
                ? SourceSet.replaceLinks(in: value) { replacement(of: $0, unless: reason, &still) }
                : replacement(of: value, unless: reason, &still)
            if let changed, changed != value { changes.append((attribute, changed)) }
        }
        guard !changes.isEmpty else { return nil }
        var output: [UInt8] = []
        var position = tag.text.startIndex
        for (attribute, value) in changes {
            output += tag.text[position..<attribute.rawValue.startIndex]
            output += AttributeText.value(value, asIn: attribute)
            position = attribute.rawValue.endIndex
        }
        if let still, tag.name == "img", tag["data-gifreel-still"] == nil, let last = changes.last?.attribute {
            output += tag.text[position..<last.text.endIndex]
            output += " data-gifreel-still=\"".utf8
            output += AttributeText.escape(still)
            output += "\"".utf8
            position = last.text.endIndex
        }
        return output + tag.text[position...]
    }

    private mutating func note(_ link: String, _ reason: String) {
        let remainder = Remainder(link: link, reason: reason)
        if noted.insert(remainder).inserted { page.remaining.append(remainder) }
    }

    /// Returns the new text of a link; nil if the link stays.
    ///
    /// - Parameter reason: Why the element stays; nil if it need not stay.
    private mutating func replacement(of text: String, unless reason: String?, _ still: inout String?) -> String? {
        guard let link = LinkText.normalize(text) else {
            if isAnimation(text) { note(text, "its address is uncertain") }
            return nil
        }
        guard isAnimation(link) else { return nil }
        if let reason {
            note(link, reason)
            return nil
        }
        let file = String(link.prefix { $0 != "#" })
        guard let url = URL(string: LinkText.encode(file), relativeTo: base)?.absoluteURL, let scheme = url.scheme?.lowercased()
        else {
            note(link, "its address is relative; give --base")
            return nil
        }
        guard ["http", "https"].contains(scheme) else {
            note(link, "it is not available by HTTP")
            return nil
        }
        switch decide(url.absoluteString) {
        case .replace(let address, let own):
            if let own { still = own }
            return address + link.dropFirst(file.count)
        case .stay(let reason):
            note(link, reason)
            return nil
        }
    }

    /// Returns why an element stays, whatever its link; nil if it need not stay.
    private func reasonToStay(_ tag: StartTag) -> String? {
        if tag["data-gifreel"]?.value == "off" { return "data-gifreel is off" }
        if tag["crossorigin"]?.value.lowercased() == "use-credentials" { return "it is requested with credentials" }
        if !openFallback.isEmpty { return "it is the fallback of another element" }
        // Tiny images are tracking pixels. What follows a number is ignored (HTML standard, section 2.3.4.4).
        let sides = ["width", "height"].compactMap { name in
            tag[name].flatMap { Double($0.value.drop(while: \.isWhitespace).prefix { "0123456789.".contains($0) }) }
        }
        return sides.count == 2 && sides.allSatisfy { $0 < 3 } ? "it is tiny" : nil
    }

    private func isAnimation(_ link: String) -> Bool {
        var last: Character?
        let path = link.prefix { character in
            defer { last = character }
            // The number sign of a character reference that stays, such as `&#128;`, begins no fragment.
            return character != "?" && (character != "#" || last == "&")
        }.lowercased()
        return extensions.contains { path.hasSuffix($0) }
    }
}

/// Attribute values for a page of another site. The page may have any encoding that extends ASCII, so values are bytes, and
/// only bytes with a meaning in HTML are replaced.
private enum AttributeText {
    /// Returns the escaped value for an attribute, in double quotes if the attribute has no quotes.
    static func value(_ text: String, asIn attribute: StartTag.Attribute) -> [UInt8] {
        let isQuoted = attribute.text.endIndex > attribute.rawValue.endIndex
        let quote = isQuoted ? [] : [UInt8(ascii: "\"")]
        return quote + escape(text) + quote
    }

    /// Escapes everything that could end an attribute, begin an element or begin a character reference (HTML standard, section
    /// 13.1.2).
    static func escape(_ text: String) -> [UInt8] {
        text.utf8.flatMap { byte -> [UInt8] in
            switch byte {
            case UInt8(ascii: "&"): Array("&amp;".utf8)
            case UInt8(ascii: "<"): Array("&lt;".utf8)
            case UInt8(ascii: ">"): Array("&gt;".utf8)
            case UInt8(ascii: "\""): Array("&quot;".utf8)
            case UInt8(ascii: "'"): Array("&#39;".utf8)
            default: [byte]
            }
        }
    }
}
