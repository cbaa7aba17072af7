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
        guard rewrite(page, piece: piece, videos: { _ in nil }).page == page else { return "a page without videos changes" }
        let all = rewrite(page, piece: max(1, page.count), videos: video)
        guard all == rewrite(page, piece: piece, videos: video) else { return "a split changes the rewritten page" }
        let images = whole.count { if case .startTag(let tag) = $0 { tag.name == "img" } else { false } }
        guard all.count <= images else { return "\(all.count) videos in place of \(images) images" }
        return all.count > 0 || all.page == page ? nil : "a page without a video changes"
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

    private struct Rewritten: Equatable {
        var page: [UInt8]
        var count: Int
    }

    private static func rewrite(_ page: [UInt8], piece: Int, videos: @escaping PageRewriter.Videos) -> Rewritten {
        var rewriter = PageRewriter(base: "https://example.com/a/", extensions: ["gif", "webp"], videos: videos)
        var output: [UInt8] = []
        var rest = page[...]
        while !rest.isEmpty {
            output += rewriter.append(rest.prefix(piece))
            rest = rest.dropFirst(piece)
        }
        output += rewriter.finish()
        return Rewritten(page: output, count: rewriter.count)
    }

    private static func video(_ url: String) -> EmbeddedVideo? {
        EmbeddedVideo(sources: [.init(url: "/mp4/\(url)", type: "video/mp4")], poster: "/jpg/\(url)", size: (96, 64))
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
        "<img =a src = \" a.gif \" src=b.gif onload=1><img src=\"https://other.example/x.gif\" alt=\"\" role=a aria-hidden=b>",
    ].map { [4] + Array($0.utf8) }
}
