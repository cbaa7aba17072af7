import Foundation
import Testing

@testable import Markup

@Suite("GIF images of a page get other addresses, and nothing else changes") struct PageRewriterTests {
    private func page(
        _ page: String, base: String? = "https://site.test/blog/", extensions: [String] = ["gif"], script: String? = nil,
        still: String? = nil
    ) -> PageRewriter.Page {
        PageRewriter.rewrite(Array(page.utf8), base: base, extensions: extensions, script: script) { url in
            url.contains("stays") ? .stay("it stays") : .replace(address: "https://g.test/auto/" + url, still: still)
        }
    }

    private func rewrite(_ text: String, base: String? = "https://site.test/blog/", extensions: [String] = ["gif"]) -> String {
        String(decoding: page(text, base: base, extensions: extensions).bytes, as: UTF8.self)
    }

    @Test func theAddressOfAnImageChangesAndTheRestStays() {
        let page = "<!DOCTYPE html>\r\n<P CLASS=x>a &nbsp; <IMG alt='x > y' SRC='a.gif' \n class=y / ><br/>\u{e9}</P>\n"
        #expect(rewrite(page) == page.replacing("'a.gif'", with: "'https://g.test/auto/https://site.test/blog/a.gif'"))
        #expect(rewrite("<img src=a.gif alt>") == "<img src=\"https://g.test/auto/https://site.test/blog/a.gif\" alt>")
    }

    @Test(arguments: [
        "<img src=a.png>", "<img src=data:image/gif;base64,AAAA>", "<img src=a.gif data-gifreel=off>",
        "<img src=a.gif crossorigin=use-credentials>", "<img src=a.gif width=1 height=1>", "<img src=a.gif width=0 height='2'>",
        "<img src=a.gif width='1px' height=' 1.5 px'>",
        "<video src=a.gif><source src=a.gif><img src=a.gif></video>", "<audio><source srcset=a.gif></audio>",
        "<object data=x><img src=a.gif></object>", "<div><object data=x /></div><img src=a.gif>",
        "<video><div><p>x</p></div><img src=a.gif></video>", "<script>'<img src=a.gif>'</script>", "<!-- <img src=a.gif> -->",
        "<textarea><img src=a.gif></textarea>", "<a href=a.gif>a</a>", "<img src='ftp://x.test/a.gif'>", "<img alt=a.gif>",
        "<svg><image href=a.gif /></svg>", "<source srcset=a.gif>", "<link rel=icon as=image href=a.gif>",
        "<img src=stays.gif srcset='stays.gif 2x'>", "<img data-title=a.gif>", "<div data-src=a.gif></div>",
    ]) func otherImagesStay(_ page: String) {
        #expect(rewrite(page) == page)
    }

    @Test(arguments: [
        "<div><video src=v.mp4 /></div>", "<p><audio src=v></audio><audio src=v /></p>", "<ul><li><canvas></ul>",
        "<div><video><source src=v.mp4><p>text</div>",
    ]) func theElementAroundAVideoThatIsNotClosedEndsIt(_ start: String) {
        #expect(rewrite(start + "<img src='a.gif'>") == start + "<img src='https://g.test/auto/https://site.test/blog/a.gif'>")
    }

    @Test func candidatesSourcesLazyAttributesAndPreloadsChange() {
        let address = "https://g.test/auto/https://site.test/blog/"
        for (before, after) in [
            (
                "<img src=\"a.png\" srcset=\"a.gif 1x, b.png 2x,c.gif 3x\">",
                "<img src=\"a.png\" srcset=\"\(address)a.gif 1x, b.png 2x,\(address)c.gif 3x\">"
            ),
            ("<img srcset=' a.gif , b.gif  640w '>", "<img srcset=' \(address)a.gif , \(address)b.gif  640w '>"),
            (
                "<picture><source media='(x)' srcset='a.gif'><img src='b.gif'></picture>",
                "<picture><source media='(x)' srcset='\(address)a.gif'><img src='\(address)b.gif'></picture>"
            ),
            ("<img src='a.png' data-src='b.gif'>", "<img src='a.png' data-src='\(address)b.gif'>"),
            ("<img data-original='b.gif'>", "<img data-original='\(address)b.gif'>"),
            ("<img data-lazy-srcset='b.gif 2x'>", "<img data-lazy-srcset='\(address)b.gif 2x'>"),
            ("<noscript><img src='b.gif'></noscript>", "<noscript><img src='\(address)b.gif'></noscript>"),
            ("<link rel=preload as=image href='b.gif'>", "<link rel=preload as=image href='\(address)b.gif'>"),
            ("<LINK REL='x PreLoad' AS=Image href='b.gif'>", "<LINK REL='x PreLoad' AS=Image href='\(address)b.gif'>"),
            ("<img src='b.gif' usemap='#m' onload='f()'>", "<img src='\(address)b.gif' usemap='#m' onload='f()'>"),
        ] {
            #expect(rewrite(before) == after)
        }
    }

    /// Style sheets select images by the ends of their addresses.
    @Test func queriesAndFragmentsStayAtTheEnd() {
        #expect(
            rewrite("<img src='a.GIF?v=1#only-dark'>")
                == "<img src='https://g.test/auto/https://site.test/blog/a.GIF?v=1#only-dark'>")
    }

    @Test func onlyTheFirstOfSeveralAttributesCounts() {
        #expect(rewrite("<img src='a.png' src='b.gif'>") == "<img src='a.png' src='b.gif'>")
    }

    @Test func onlyImagesWithTheGivenExtensionsAreChanged() {
        let page = "<img src=a.webp><img src=a.PNG?v=1><img src=a.gif><img src=a.webp.txt>"
        #expect(self.page(page, extensions: ["png", "webp"]).changed == 2)
        #expect(rewrite(page).hasPrefix("<img src=a.webp><img src=a.PNG?v=1><img src=\"https://g.test/"))
    }

    @Test func relativeLinksNeedAPage() {
        let without = page("<img src=a.gif>", base: nil)
        #expect(
            without.changed == 0 && without.remaining == [.init(link: "a.gif", reason: "its address is relative; give --base")])
        #expect(rewrite("<img src=https://x.test/a.gif>", base: nil).contains("auto/https://x.test/a.gif"))
        #expect(rewrite("<base href=/img/><base href=/no/><img src=a.gif>").contains("auto/https://site.test/img/a.gif"))
        #expect(rewrite("<img src=//cdn.test/a.GIF?v=1#x>").contains("auto/https://cdn.test/a.GIF?v=1"))
    }

    @Test func whatStaysHasItsReason() {
        let page = page(
            "<img src=stays.gif><img srcset='stays.gif'><img src=b.gif data-gifreel=off><img src=t.gif width=1 height=1>"
                + "<img src='caf&eacute;.gif'><img srcset='caf&eacute;.gif 2x'><img src=c.png>"
                + "<img src='d&#128;.gif'><img srcset='e&#128;.gif 2x'><img src=f&#128;.png><img src=ftp://x.test/g.gif>")
        let reasons = [
            ("stays.gif", "it stays"), ("b.gif", "data-gifreel is off"), ("t.gif", "it is tiny"),
            ("caf&eacute;.gif", "its address is uncertain"), ("d&#128;.gif", "its address is uncertain"),
            ("e&#128;.gif", "its address is uncertain"), ("ftp://x.test/g.gif", "it is not available by HTTP"),
        ]
        #expect(page.remaining == reasons.map { PageRewriter.Remainder(link: $0, reason: $1) })
    }

    @Test(arguments: [
        ("<img src='images\\b.gif?x=\\'>", "https://site.test/blog/images/b.gif?x=%5C"),
        ("<img src=' \u{1}a\nb\t.gif\r\n'>", "https://site.test/blog/ab.gif"),
        ("<img src='caf&#233;.gif'>", "https://site.test/blog/caf%C3%A9.gif"),
        ("<img src='caf\u{e9}%20x.gif'>", "https://site.test/blog/caf%C3%A9%20x.gif"),
        ("<img src='/My%20Pics/a cat [1].gif'>", "https://site.test/My%20Pics/a%20cat%20%5B1%5D.gif"),
        ("<img src='a.gif?u=%2F&n=\u{e9}'>", "https://site.test/blog/a.gif?u=%2F&amp;n=%C3%A9"),
        ("<img src='https://x.test/100%.gif?50%2'>", "https://x.test/100%25.gif?50%252"),
        ("<base href='/a%20\u{e9}/'><img src=a.gif>", "https://site.test/a%20%C3%A9/a.gif"),
        ("<base href='\\img\n\\'><img src=a.gif>", "https://site.test/img/a.gif"),
        // Names that are no references, and those before a letter, a digit or an equals sign, are text.
        ("<img src='a.gif?a=1&b=2&amp;c=3'>", "https://site.test/blog/a.gif?a=1&amp;b=2&amp;c=3"),
        (
            "<img src='a.gif?x&y&X-Amz-Date=1&utm_source=z&amp;s'>",
            "https://site.test/blog/a.gif?x&amp;y&amp;X-Amz-Date=1&amp;utm_source=z&amp;s"
        ),
        ("<img src='a.gif?x&copy=1&regular&copy2'>", "https://site.test/blog/a.gif?x&amp;copy=1&amp;regular&amp;copy2"),
    ]) func linksAreResolvedAsBrowsersDo(_ page: String, _ url: String) {
        let output = rewrite(page)
        #expect(output.contains("auto/\(url)'") || output.contains("auto/\(url)\""), "\(output)")
    }

    /// Browsers may request another URL than this program would.
    @Test(arguments: [
        Array("<img src='caf&eacute;.gif'>".utf8), Array("<img src='caf".utf8) + [0xE9] + Array(".gif'>".utf8),
        Array("<base href='/caf&eacute;/'><img src=a.gif>".utf8), Array("<img src='caf&eacute.gif'>".utf8),
        Array("<img src='a.gif?x&copy'>".utf8), Array("<img src='a.gif?x&reg_id=1'>".utf8),
        Array("<img src='a.gif?&#128;'>".utf8), Array("<img srcset='a.gif?&#128; 1x'>".utf8),
        Array("<img src='{{ base }}/a.gif'>".utf8), Array("<img src='<?= $base ?>/a.gif'>".utf8),
        Array("<img src='<%= base %>/a.gif'>".utf8), Array("<img data-src='a_{width}x.gif'>".utf8),
        Array("<img data-srcset='a_{width}x.gif 1x'>".utf8),
        Array("<img src='a.gif?&#65'>".utf8), Array("<img src='a.gif?&#0;x'>".utf8), Array("<img src='a.gif?&#+65;x'>".utf8),
    ]) func anImageWithAnUncertainURLStays(_ page: [UInt8]) {
        let output = PageRewriter.rewrite(page, base: "https://site.test/") { _ in .replace(address: "x") }
        #expect(output.bytes == page && output.changed == 0)
    }

    @Test func textInAScriptStaysAfterADrawingThatIsNotClosed() {
        let script = "<script>x = '<img src=a.gif>'</script>"
        #expect(rewrite("<svg><path d=''><p>text</p>\(script)") == "<svg><path d=''><p>text</p>\(script)")
    }

    @Test func bytesOfOtherEncodingsStay() {
        let before = Array("\u{e9}".utf8) + [0xE9] + Array("<img alt='".utf8) + [0xE9] + Array("' src='".utf8)
        let output = PageRewriter.rewrite(before + Array("a.gif'>".utf8), base: "https://site.test/") { _ in
            .replace(address: "x")
        }
        #expect(output.bytes == before + Array("x'>".utf8))
    }

    @Test func aSignedStillIsStatedOnTheImage() {
        let output = page("<img src='a.gif' alt=x/><img srcset='a.gif 1x'/>", still: "https://g.test/webp?a&\"").bytes
        #expect(
            String(decoding: output, as: UTF8.self)
                == "<img src='https://g.test/auto/https://site.test/blog/a.gif' data-gifreel-still=\"https://g.test/webp?a&amp;&quot;\" alt=x/>"
                + "<img srcset='https://g.test/auto/https://site.test/blog/a.gif 1x' data-gifreel-still=\"https://g.test/webp?a&amp;&quot;\"/>"
        )
    }

    @Test func theScriptIsAddedOnceBeforeTheEndOfABodyThatNeedsIt() {
        let script = "<script src=/gifreel.js></script>"
        func output(_ text: String) -> (String, Bool) {
            let page = page(text, script: script)
            return (String(decoding: page.bytes, as: UTF8.self), page.hasScript)
        }
        let image = "<img src='https://g.test/auto/https://site.test/blog/a.gif'>"
        #expect(output("<body><img src='a.gif'></body></html>") == ("<body>\(image)\(script)</body></html>", true))
        #expect(output("<p><img src='a.gif'>") == ("<p>\(image)", false))
        #expect(output("<body><img src='a.png'></body>") == ("<body><img src='a.png'></body>", false))
        #expect(
            output("<script src=https://x/gifreel.js></script><img src='a.gif'></body>") == (
                "<script src=https://x/gifreel.js></script>\(image)</body>", true
            ))
        for link in ["https://x/gifreel.js?ver=3", "gifreel.js#a"] {
            let (text, _) = output("<script src=\(link)></script><img src='a.gif'></body>")
            #expect(text.components(separatedBy: "<script").count == 2, "\(text)")
        }
        #expect(output("<script src=/not-gifreel.js></script><img src='a.gif'></body>").0.contains(script))
        #expect(output("<img src='a.gif'></body></body>") == ("\(image)</body>\(script)</body>", true))
    }
}

@Suite("In pages of common systems, only the addresses of images change") struct PagesOfSystemsTests {
    @Test(arguments: PagesOfSystems.all.map(\.name)) func theRestOfThePageStays(_ name: String) throws {
        let system = try #require(PagesOfSystems.all.first { $0.name == name })
        let output = PageRewriter.rewrite(Array(system.page.utf8), base: "https://site.test/p/") {
            .replace(address: "/auto/\($0)")
        }
        #expect(output.changed == system.replaced, "\(String(decoding: output.bytes, as: UTF8.self))")
        #expect(PageInvariants.difference(between: Array(system.page.utf8), and: output.bytes) == nil)
        let again = PageRewriter.rewrite(output.bytes, base: "https://site.test/p/") {
            $0.contains("/auto/") ? .stay("") : .replace(address: "x")
        }
        #expect(again.bytes == output.bytes)
    }
}

@Suite("What a document is for is told by its markup") struct PageKindTests {
    @Test(arguments: [
        ("<!doctype html><html lang=en><body><img src=a.gif>", PageKind.page), ("<p>text", .page), ("", .page),
        ("<!--[if lt IE 9]><script></script><![endif]--><p>", .page), ("text: more", .page),
        ("<html xmlns:v=\"urn:schemas-microsoft-com:vml\" xmlns:w=\"urn:schemas-microsoft-com:office:word\">", .page),
        ("<?xml version=\"1.0\"?>\n<rss version=2.0>", .feed), ("<feed xmlns=\"http://www.w3.org/2005/Atom\">", .feed),
        ("<rdf:RDF xmlns:rdf=x>", .feed), ("\u{FEFF}{\"version\": \"https://jsonfeed.org/version/1.1\"}", .feed),
        ("<!doctype html><html \u{26A1} lang=en>", .amp), ("<html \u{26A1}\u{FE0F}>", .amp), ("<html amp>", .amp),
        ("<html amp4ads>", .amp), ("{\n  \"items\": []}", .feed), ("{% include head.html %}<img src=a.gif>", .page),
        ("{{ partial \"head.html\" . }}", .page), ("{<p>", .page),
        ("<html \u{26A1}4email>", .mail), ("<html xmlns:v=\"urn:schemas-microsoft-com:vml\">", .mail),
        (
            "<html xmlns:v=\"urn:schemas-microsoft-com:vml\" xmlns:w=\"urn:schemas-microsoft-com:office:word\"><!--[if !mso]><style>",
            .page
        ), ("<!--[if gte mso 9]><xml>", .page), ("<!--[if (IE 9)]><p>mso<![endif]-->", .page),
        ("<!--[if (gte mso 9)|(IE)]><table>", .mail), ("<!--[if !(mso)]><!--><p>", .mail), ("<!--[if (mso 16)]><style>", .mail),
        ("<html><head><!--[if mso]><xml></xml><![endif]-->", .mail), ("<!--[if !mso]><!--><p>", .mail),
        ("<meta name=\"x-apple-disable-message-reformatting\">", .mail),
        ("From: a@example.com\r\nSubject: x\r\n\r\n<p>", .mail),
        ("MIME-Version: 1.0\n", .mail),
    ]) func kind(_ document: String, _ kind: PageKind) {
        #expect(PageKind(of: Array(document.utf8)) == kind)
    }
}
