#if !FUZZ
    import Markup
#endif

/// What must hold of the rewriting of pages, whatever they contain and however they arrive. The fuzzer looks for a page for which it
/// does not hold.
enum PageInvariants {
    /// The first invariant that does not hold, in words; nil if all do.
    ///
    /// - Parameter bytes: A byte that says how the page is split, and the page.
    static func violation(_ bytes: UnsafeRawBufferPointer) -> String? {
        guard let first = bytes.first else { return nil }
        let page = [UInt8](bytes.dropFirst())
        let piece = 1 + Int(first) % 11
        let (whole, split) = (tokens(page, piece: max(1, page.count)), tokens(page, piece: piece))
        guard whole == split else { return "a split changes the tokens: \(whole) \(split)" }
        guard whole.flatMap(text) == page else { return "the tokens are not the page" }
        let none = PageRewriter.rewrite(page, base: base, extensions: extensions) { _ in .stay("") }
        guard none.bytes == page, none.changed == 0 else { return "a page without new addresses changes" }
        let all = PageRewriter.rewrite(page, base: base, extensions: extensions) {
            .replace(address: "/auto,a=b/\($0)", still: "'s\"")
        }
        if all.changed == 0 { return all.bytes == page ? nil : "a page without a new address changes" }
        return difference(between: page, and: all.bytes)
    }

    private static let (base, extensions) = ("https://example.com/a/", ["gif", "webp"])

    /// A difference between a page and the rewritten page that is not an address, in words; nil if there is none.
    static func difference(between page: [UInt8], and rewritten: [UInt8]) -> String? {
        let (before, after) = (tokens(page, piece: max(1, page.count)), tokens(rewritten, piece: max(1, rewritten.count)))
        guard before.count == after.count else { return "\(before.count) tokens become \(after.count)" }
        for (old, new) in zip(before, after) where old != new {
            guard case .startTag(let old) = old, case .startTag(let new) = new, ["img", "source", "link"].contains(old.name),
                old.name == new.name, old.isSelfClosing == new.isSelfClosing
            else { return "\(old) becomes \(new)" }
            var others = new.attributes
            if others.count > old.attributes.count { others.removeAll { $0.name == "data-gifreel-still" } }
            guard others.map(\.name) == old.attributes.map(\.name) else { return "\(old) has other attributes in \(new)" }
            for (one, other) in zip(old.attributes, others) where one.rawValue != other.rawValue {
                guard other.value.contains("/auto") else { return "\(one) becomes \(other)" }
            }
        }
        return nil
    }

    /// The tokens; texts that follow one another are one.
    private static func tokens(_ page: [UInt8], piece: Int) -> [HTMLTokenizer.Token] {
        var tokenizer = HTMLTokenizer()
        var tokens: [HTMLTokenizer.Token] = []
        var rest = page[...]
        while !rest.isEmpty {
            tokens += tokenizer.append(rest.prefix(piece))
            rest = rest.dropFirst(piece)
        }
        tokens += tokenizer.finish()
        return tokens.reduce(into: []) { joined, token in
            if case .text(let before)? = joined.last, case .text(let text) = token {
                joined[joined.count - 1] = .text(before + text)
            } else {
                joined.append(token)
            }
        }
    }

    private static func text(_ token: HTMLTokenizer.Token) -> ArraySlice<UInt8> {
        switch token {
        case .text(let text), .endTag(_, let text): text
        case .startTag(let tag): tag.text
        }
    }
}

/// The first inputs of the fuzzer.
enum PageSeeds {
    static let all: [[UInt8]] = [
        "<!doctype html><html><base href=/b/><img src=a.gif alt='x &amp; y' width=1><IMG SRC=\"b.GIF?x#y\"/></html>",
        "<picture><source srcset=a.webp><img src=a.gif></picture><video><img src=a.gif></video><img src=c.webp data-gifreel=off>",
        "<!--<img src=a.gif>--><!--><!---><![CDATA[<img src=a.gif>]]><?pi <img src=a.gif>?></ x><//><a<b<c d=e f='g' h=\"i\"j>",
        "<script><!--<script></script>--></script><style></styl></style ><title><img src=a.gif></title><textarea></textarea>",
        "<svg><![CDATA[<img src=a.gif>]]><foreignObject><img src=a.gif></foreignObject></svg><math/><plaintext><img src=a.gif>",
        "<img =a src = \" a.gif \" src=b.gif onload=1><img srcset='a.gif 1x,b.webp, c.gif(,) 2x' data-src=d.gif/><img src=\"https://other.example/x.gif\" alt=\"\" role=a aria-hidden=b>",
    ].map { [4] + Array($0.utf8) }
}
