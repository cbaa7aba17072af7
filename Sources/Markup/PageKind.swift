/// The purpose of a document with HTML.
package enum PageKind: String, Sendable, CaseIterable {
    /// A page for browsers.
    case page
    /// A feed (RSS, Atom, JSON Feed), whose readers cache and transform its images.
    case feed
    /// An email, whose images a proxy may request on behalf of unknown mail programs.
    case mail
    /// A page in AMP HTML, whose cache stores one variant of each image.
    case amp

    /// Classifies a document by its markup.
    package init(of document: [UInt8]) {
        self = Self.fields(document) ?? Self.tags(document)
    }

    /// Returns the kind of a document that begins with a field of a message (RFC 5322) or with JSON; nil for others.
    private static func fields(_ document: [UInt8]) -> PageKind? {
        let text = document.drop { $0.isHTMLSpace || [0xEF, 0xBB, 0xBF].contains($0) }
        // The name of a JSON object's first member begins with a quote. Templates begin with "{%" or "{{".
        let inner = text.dropFirst().first { !$0.isHTMLSpace }
        if text.first == UInt8(ascii: "{"), inner == UInt8(ascii: "\"") { return .feed }
        let name = String(lowercased: text.prefix { $0 != UInt8(ascii: ":") && $0 > 0x20 }.prefix(40))
        let isField = text.dropFirst(name.utf8.count).first == UInt8(ascii: ":")
        let names = [
            "from", "received", "return-path", "mime-version", "content-type", "message-id", "delivered-to", "subject",
        ]
        return isField && names.contains(name) ? .mail : nil
    }

    private static func tags(_ document: [UInt8]) -> PageKind {
        var tokenizer = HTMLTokenizer()
        for token in tokenizer.append(document) + tokenizer.finish() {
            switch token {
            case .text(let text):
                if isForOutlook(text) { return .mail }
            case .startTag(let tag):
                if let kind = kind(of: tag) { return kind }
            case .endTag:
                break
            }
        }
        return .page
    }

    /// Whether a text is a conditional comment of an email, such as `[if mso]` and `[if (gte mso 9)|(IE)]`. Pages saved by Word also
    /// have `[if gte mso 9]`.
    private static func isForOutlook(_ text: ArraySlice<UInt8>) -> Bool {
        guard text.starts(with: "[if ".utf8) else { return false }
        let condition = text.dropFirst(4).prefix { $0 != UInt8(ascii: "]") }.drop { $0 == UInt8(ascii: "!") }
        return condition.starts(with: "mso".utf8)
            || (condition.first == UInt8(ascii: "(") && condition.firstRange(of: Array("mso".utf8)) != nil)
    }

    private static func kind(of tag: StartTag) -> PageKind? {
        switch tag.name {
        case "rss", "feed", "rdf:rdf", "channel":
            return .feed
        case "html":
            // Word writes `[if !mso]` too.
            if tag["xmlns:w"] != nil { return .page }
            for attribute in tag.attributes {
                // The AMP sign is short for `amp`, with or without a variation selector.
                let name = attribute.name.unicodeScalars.map { $0 == "\u{26A1}" ? "amp" : $0 == "\u{FE0F}" ? "" : String($0) }
                    .joined()
                if name == "amp4email" { return .mail }
                if name == "amp" || name == "amp4ads" { return .amp }
                if name == "xmlns:v" { return .mail }
            }
            return nil
        case "meta":
            return tag["name"]?.value == "x-apple-disable-message-reformatting" ? .mail : nil
        default:
            return nil
        }
    }
}
