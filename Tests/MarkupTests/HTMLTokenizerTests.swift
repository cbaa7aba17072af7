import TestSupport
import Testing

@testable import Markup

@Suite("A page is split into tags and text") struct HTMLTokenizerTests {
    /// The tags of a page: `name` for start tags, `/name` for end tags.
    private func tags(_ page: String, pieceLength: Int = .max) -> [String] {
        tokens(Array(page.utf8), pieceLength: pieceLength).compactMap { token in
            switch token {
            case .text: nil
            case .startTag(let tag): tag.name
            case .endTag(let name, _): "/" + name
            }
        }
    }

    private func tokens(_ page: [UInt8], pieceLength: Int = .max) -> [HTMLTokenizer.Token] {
        var tokenizer = HTMLTokenizer()
        var tokens: [HTMLTokenizer.Token] = []
        var rest = page[...]
        while !rest.isEmpty {
            tokens += tokenizer.append(rest.prefix(pieceLength))
            rest = rest.dropFirst(pieceLength)
        }
        return tokens + tokenizer.finish()
    }

    private func text(_ tokens: [HTMLTokenizer.Token]) -> [UInt8] {
        tokens.flatMap { token in
            switch token {
            case .text(let text), .endTag(_, let text): text
            case .startTag(let tag): tag.text
            }
        }
    }

    private static let pages: [(page: String, tags: [String])] = [
        ("a<b>c</b>d", ["b", "/b"]),
        ("<!DOCTYPE html><!-- <i> --><p>", ["p"]),
        ("<!--><i><!---><b><!-- > --!> <u> --><p>", ["i", "b", "u", "p"]),
        ("<!----!><i><!--!><b>--!><u><!-- --! --!- --><p>", ["i", "u", "p"]),
        ("<!-- <i> -- > <b>", []),
        ("<?xml <i>?><p>", ["p"]),
        ("</ <i>></><p>< i>1 < 2 <3<b>", ["p", "b"]),
        ("<script>if (a<b) '<i>'</script><p>", ["script", "/script", "p"]),
        ("<script><!-- <script>1</script><i> --></script><p>", ["script", "/script", "p"]),
        ("<script><!-- 1</script><i>", ["script", "/script", "i"]),
        ("<script><!--><script></script><i>", ["script", "/script", "i"]),
        ("<SCRIPT>1</scripts></SCRIPT ><p>", ["script", "/script", "p"]),
        (
            "<style><i></style><title><b></title><textarea><img></textarea>",
            ["style", "/style", "title", "/title", "textarea", "/textarea"]
        ),
        ("<iframe><img></iframe><noscript><img></noscript>", ["iframe", "/iframe", "noscript", "img", "/noscript"]),
        ("<plaintext><img></plaintext>", ["plaintext"]),
        ("<svg><![CDATA[<i>]]><style><b></style></svg><![CDATA[<u>", ["svg", "style", "b", "/style", "/svg"]),
        (
            "<svg><foreignObject><style><b></style></foreignObject><title><b>",
            ["svg", "foreignobject", "style", "/style", "/foreignobject", "title", "b"]
        ),
        ("<svg/><style><b></style>", ["svg", "style", "/style"]),
        ("<svg><path><p><script>'<img>'</script>", ["svg", "path", "p", "script", "/script"]),
        ("<math><mi>x<div><style><b></style>", ["math", "mi", "div", "style", "/style"]),
        ("<math><mspace><ul><textarea><b></textarea>", ["math", "mspace", "ul", "textarea", "/textarea"]),
        ("<svg></p><title><b></title>", ["svg", "/p", "title", "/title"]),
        ("<svg><font size=1><style><b></style>", ["svg", "font", "style", "/style"]),
        ("<svg><font><style><b></style>", ["svg", "font", "style", "b", "/style"]),
        (
            "<svg><desc><p></p></desc><style><b></style></svg>",
            ["svg", "desc", "p", "/p", "/desc", "style", "b", "/style", "/svg"]
        ),
        (
            "<svg><foreignObject><svg><p><style><b></style></foreignObject><style><i></style>",
            ["svg", "foreignobject", "svg", "p", "style", "/style", "/foreignobject", "style", "i", "/style"]
        ),
        ("<svg><title><![CDATA[<i>]]></title></svg>", ["svg", "title", "/title", "/svg"]),
        ("<a b='>' c=\">\" d=x>y>", ["a"]),
        ("<a b=\"", []),
        ("<p", []),
        ("<", []),
        ("text", []),
    ]

    @Test(arguments: pages) func tagsAreThoseThatABrowserSees(_ page: String, _ expected: [String]) {
        #expect(tags(page) == expected)
    }

    @Test(arguments: pages, [1, 2, 3, 7]) func piecesOfAnyLengthGiveTheSameTags(
        _ page: (page: String, tags: [String]), _ length: Int
    ) {
        #expect(tags(page.page, pieceLength: length) == page.tags)
        let bytes = Array(page.page.utf8)
        #expect(text(tokens(bytes, pieceLength: length)) == bytes)
    }

    @Test func randomMarkupKeepsItsBytes() {
        var numbers = SeededNumbers(seed: 23)
        let parts = [
            "<", ">", "</", "<!--", "-->", "<script>", "</script>", "<svg>", "</svg>", "<img src=", "'", "\"", "=", "a", " ",
            "/", "<![CDATA[", "]]>", "\u{e9}",
        ]
        for _ in 0..<500 {
            let page = Array((0..<30).map { _ in parts[Int(numbers.next() % UInt64(parts.count))] }.joined().utf8)
            let whole = tokens(page)
            #expect(text(whole) == page)
            let pieces = tokens(page, pieceLength: 1 + Int(numbers.next() % 5))
            #expect(text(pieces) == page)
            #expect(
                pieces.filter { if case .text = $0 { false } else { true } }
                    == whole.filter { if case .text = $0 { false } else { true } })
        }
    }

    @Test func attributesHaveTheValuesThatABrowserSees() throws {
        let page = "<IMG Src = \"a&amp;b.gif\" alt='x \"y\"' width=10 hidden =\u{3d} data-a=1/2 src=other/>"
        guard case .startTag(let tag) = try #require(tokens(Array(page.utf8)).first) else {
            Issue.record("no tag")
            return
        }
        #expect(tag.name == "img" && !tag.isSelfClosing)
        #expect(tag["src"]?.value == "a&b.gif")
        #expect(tag["alt"]?.value == "x \"y\"")
        #expect(tag["width"]?.value == "10")
        #expect(tag["data-a"]?.value == "1/2")
        #expect(tag.attributes.map(\.name) == ["src", "alt", "width", "hidden", "data-a", "src"])
    }

    @Test(arguments: [
        ("&amp;&lt;&gt;&quot;&apos;", "&<>\"'"), ("&#65;&#x42;&#X43;", "ABC"), ("&#x1F600;", "😀"), ("&nbsp;", "&nbsp;"),
        ("&amp", "&amp"), ("a&b=c", "a&b=c"), ("&#xD800;", "&#xD800;"), ("&#99999999;", "&#99999999;"), ("&;", "&;"),
        ("&&amp;", "&&"), ("&#;", "&#;"), ("&amp;amp;", "&amp;"),
        ("&#0;", "&#0;"), ("&#128;&#x9F;", "&#128;&#x9F;"), ("a&#160;b", "a\u{A0}b"), ("&#+65;&#x-0;", "&#+65;&#x-0;"),
    ])
    func characterReferencesAreDecodedAndOtherAmpersandsStay(_ text: String, _ decoded: String) {
        #expect(CharacterReferences.decode(text.utf8) == decoded)
    }

    @Test func aTagThatIsTooLongIsText() {
        let page = Array("<a b='".utf8) + [UInt8](repeating: 0x61, count: HTMLTokenizer.maxTagLength + 1) + Array("'><i>".utf8)
        var tokenizer = HTMLTokenizer()
        let first = tokenizer.append(page.dropLast(5))
        #expect(!first.isEmpty)
        let all = first + tokenizer.append(page.suffix(5)) + tokenizer.finish()
        #expect(text(all) == page)
    }

    @Test func aPageOfTagsWithoutAnEndIsSearchedOnceForEachPieceOfTheLongestLength() {
        let page = Array(String(repeating: "<a ", count: HTMLTokenizer.maxTagLength / 3 + 12).utf8)
        let tokens = tokens(page)
        #expect(text(tokens) == page)
        #expect(tokens.count <= 4, "\(tokens.count) pieces")
    }
}
