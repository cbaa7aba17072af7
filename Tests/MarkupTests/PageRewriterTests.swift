import Foundation
import Testing

@testable import Markup

@Suite("GIF images of a page become videos, and nothing else changes") struct PageRewriterTests {
    private func rewrite(
        _ page: String, base: String? = "https://site.test/blog/", extensions: [String] = ["gif"], pieceLength: Int = .max
    ) -> String {
        var rewriter = PageRewriter(base: base, extensions: extensions) { url in
            EmbeddedVideo(
                sources: [.init(url: "https://gifs.test/mp4/" + url, type: "video/mp4")],
                poster: "https://gifs.test/jpg/" + url, size: (40, 30), loops: !url.contains("once"))
        }
        var output: [UInt8] = []
        var rest = Array(page.utf8)[...]
        while !rest.isEmpty {
            output += rewriter.append(rest.prefix(pieceLength))
            rest = rest.dropFirst(pieceLength)
        }
        return String(decoding: output + rewriter.finish(), as: UTF8.self)
    }

    /// The video with which the fixture replaces an image without text.
    private func video(_ url: String, _ attributes: String = " width=\"40\" height=\"30\"", text: String = "") -> String {
        "<video autoplay=\"\" loop=\"\" muted=\"\" playsinline=\"\" poster=\"https://gifs.test/jpg/\(url)\"\(attributes)>"
            + "<source src=\"https://gifs.test/mp4/\(url)\" type=\"video/mp4\"/>\(text)</video>"
    }

    @Test func anImageIsReplacedAndTheRestStays() {
        let page = "<!DOCTYPE html>\r\n<P CLASS=x>a &nbsp; <img src=a.gif><br/>\u{e9}</P>\n"
        let expected = page.replacing("<img src=a.gif>", with: video("https://site.test/blog/a.gif"))
        #expect(rewrite(page) == expected)
        for length in 1...9 { #expect(rewrite(page, pieceLength: length) == expected) }
    }

    @Test(arguments: [
        "<img src=a.png>", "<img src=data:image/gif;base64,AAAA>", "<img src=a.gif data-gifreel=off>",
        "<img src=a.gif usemap='#m'>", "<img src=a.gif ismap>", "<img src=a.gif onload='show(this)'>", "<img data-src=a.gif>",
        "<picture><source srcset=a.webp><img src=a.gif></picture>", "<video><img src=a.gif></video>",
        "<object data=x><img src=a.gif></object>", "<script>'<img src=a.gif>'</script>", "<!-- <img src=a.gif> -->",
        "<textarea><img src=a.gif></textarea>", "<a href=a.gif>a</a>", "<img src='ftp://x.test/a.gif'>", "<img alt=a.gif>",
    ]) func otherImagesStay(_ page: String) {
        #expect(rewrite(page) == page)
    }

    @Test func onlyImagesWithTheGivenExtensionsAreReplaced() {
        let page = "<img src=a.webp><img src=a.PNG?v=1><img src=a.gif><img src=a.webp.txt>"
        #expect(rewrite(page, extensions: ["png", "webp"]).components(separatedBy: "<video ").count == 3)
        #expect(rewrite(page, extensions: ["png", "webp"]).hasSuffix("<img src=a.gif><img src=a.webp.txt>"))
        #expect(rewrite(page).hasPrefix("<img src=a.webp><img src=a.PNG?v=1><video "))
    }

    @Test func anImageAfterAPictureIsReplaced() {
        #expect(
            rewrite("<picture><img src=a.gif></picture><img src=b.gif>").hasPrefix("<picture><img src=a.gif></picture><video "))
    }

    @Test func relativeLinksNeedAPage() {
        #expect(rewrite("<img src=a.gif>", base: nil) == "<img src=a.gif>")
        #expect(rewrite("<img src=https://x.test/a.gif>", base: nil).contains("mp4/https://x.test/a.gif"))
        #expect(rewrite("<base href=/img/><base href=/no/><img src=a.gif>").contains("mp4/https://site.test/img/a.gif"))
        #expect(rewrite("<img src=//cdn.test/a.GIF?v=1#x>").contains("mp4/https://cdn.test/a.GIF?v=1"))
    }

    @Test(arguments: [
        ("<img src='images\\b.gif?x=\\'>", "https://site.test/blog/images/b.gif?x=%5C"),
        ("<img src=' \u{1}a\nb\t.gif\r\n'>", "https://site.test/blog/ab.gif"),
        ("<img src='caf&#233;.gif'>", "https://site.test/blog/caf%C3%A9.gif"),
        ("<base href='\\img\n\\'><img src=a.gif>", "https://site.test/img/a.gif"),
        // Names that are no references, and those before a letter, a digit or an equals sign, are text.
        ("<img src='a.gif?a=1&b=2&amp;c=3'>", "https://site.test/blog/a.gif?a=1&amp;b=2&amp;c=3"),
        (
            "<img src='a.gif?x&y&X-Amz-Date=1&utm_source=z&amp;s'>",
            "https://site.test/blog/a.gif?x&amp;y&amp;X-Amz-Date=1&amp;utm_source=z&amp;s"
        ),
        ("<img src='a.gif?x&copy=1&regular&copy2'>", "https://site.test/blog/a.gif?x&amp;copy=1&amp;regular&amp;copy2"),
    ]) func linksAreResolvedAsBrowsersDo(_ page: String, _ url: String) {
        #expect(rewrite(page).contains("mp4/\(url)\""))
    }

    /// Browsers may request another URL than this program would.
    @Test(arguments: [
        Array("<img src='caf&eacute;.gif'>".utf8), Array("<img src='caf".utf8) + [0xE9] + Array(".gif'>".utf8),
        Array("<base href='/caf&eacute;/'><img src=a.gif>".utf8), Array("<img src='caf&eacute.gif'>".utf8),
        Array("<img src='a.gif?x&copy'>".utf8), Array("<img src='a.gif?x&reg_id=1'>".utf8),
        Array("<img src='a.gif?&#128;'>".utf8),
        Array("<img src='a.gif?&#65'>".utf8), Array("<img src='a.gif?&#0;x'>".utf8), Array("<img src='a.gif?&#+65;x'>".utf8),
    ]) func anImageWithAnUncertainURLStays(_ page: [UInt8]) {
        var rewriter = PageRewriter(base: "https://site.test/") { _ in EmbeddedVideo(sources: [], poster: "p") }
        let output = rewriter.append(page) + rewriter.finish()
        #expect(output == page && rewriter.count == 0)
    }

    @Test func textInAScriptStaysAfterADrawingThatIsNotClosed() {
        let script = "<script>x = '<img src=a.gif>'</script>"
        #expect(rewrite("<svg><path d=''><p>text</p>\(script)") == "<svg><path d=''><p>text</p>\(script)")
    }

    @Test func attributesAreKeptAsTheyAre() {
        let page = "<img class='a b' src=\"a.gif\" loading=lazy srcset='a.gif 2x' style=\"width:50%\" data-x=1 width=100 id=i/>"
        #expect(
            rewrite(page)
                == video(
                    "https://site.test/blog/a.gif", " class='a b' loading=lazy style=\"width:50%\" data-x=1 width=100 id=i/"))
    }

    /// Without quotes, an attribute that follows would be the value.
    @Test(arguments: [
        ("<img src=a.gif class=>", " class=\"\""), ("<img src=a.gif class= \n>", " class= \n\"\""),
        ("<img src=a.gif class=''>", " class=''"), ("<img src=a.gif data-x=b=>", " data-x=b="),
        ("<img src=a.gif hidden>", " hidden"),
    ]) func anAttributeWithoutAValueTakesNoOther(_ page: String, _ attribute: String) {
        #expect(rewrite(page) == video("https://site.test/blog/a.gif", attribute + " width=\"40\" height=\"30\""))
    }

    /// A link within the link would end the video and the link.
    @Test(arguments: ["A cat", ""]) func anImageInALinkBecomesAVideoWithoutALink(_ text: String) {
        let page = rewrite("<a href=/full><img src=a.gif alt='\(text)'> more</a>")
        #expect(page.hasPrefix("<a href=/full><video ") && page.hasSuffix("type=\"video/mp4\"/>\(text)</video> more</a>"))
        #expect(page.components(separatedBy: "<a ").count == 2)
    }

    @Test func textBecomesTheNameOfTheVideo() {
        let size = " width=\"40\" height=\"30\""
        #expect(
            rewrite("<img src=a.gif alt='caf&eacute; \"<b>\"'>")
                == video(
                    "https://site.test/blog/a.gif", size + " role=\"img\" aria-label=\"caf&eacute; &quot;&lt;b&gt;&quot;\"",
                    text: "caf&eacute; &quot;&lt;b&gt;&quot;"))
        #expect(rewrite("<img src=a.gif alt=''>").contains(" aria-hidden=\"true\">"))
        let labelled = rewrite("<img src=a.gif alt=x aria-label=y>")
        #expect(labelled.contains(" aria-label=y ") && !labelled.contains("role="))
    }

    @Test func bytesOfOtherEncodingsStay() {
        var rewriter = PageRewriter(base: "https://site.test/") { _ in EmbeddedVideo(sources: [], poster: "p") }
        let output = rewriter.append(
            Array("\u{e9}".utf8) + [0xE9] + Array("<img alt='".utf8) + [0xE9] + Array("' src=a.gif>".utf8))
        #expect(
            output.starts(with: [0xC3, 0xA9, 0xE9]) && output.firstRange(of: Array("label=\"".utf8) + [0xE9, 0x22]) != nil)
        #expect(rewriter.count == 1 && rewriter.finish().isEmpty)
    }

    @Test func addressesAreEscaped() {
        #expect(
            rewrite("<img src='a.gif?x=1&amp;y=\"2'>").contains(
                "poster=\"https://gifs.test/jpg/https://site.test/blog/a.gif?x=1&amp;y=%222\""))
    }

    @Test func aGIFThatPlaysOnceIsNoLoop() {
        #expect(!rewrite("<img src=once.gif>").contains("loop"))
    }
}

@Suite("In pages of common systems, only the images change") struct PagesOfSystemsTests {
    @Test(arguments: PagesOfSystems.all.map(\.name), [1, 100, 100_000]) func theRestOfThePageStays(
        _ name: String, _ pieceLength: Int
    ) throws {
        let system = try #require(PagesOfSystems.all.first { $0.name == name })
        var images: [String] = []
        var rewriter = PageRewriter(base: "https://site.test/p/") { url in
            images.append(url)
            return EmbeddedVideo(sources: [.init(url: "v\(images.count)", type: "video/mp4")], poster: "p")
        }
        var output: [UInt8] = []
        var rest = Array(system.page.utf8)[...]
        while !rest.isEmpty {
            output += rewriter.append(rest.prefix(pieceLength))
            rest = rest.dropFirst(pieceLength)
        }
        output += rewriter.finish()
        #expect(rewriter.count == system.replaced && images.count == system.replaced, "\(images)")
        // The page consists of the texts between the videos, in order, and one image tag in place of each video.
        var unread = system.page[...]
        let pieces = String(decoding: output, as: UTF8.self).split(separator: "<video ", omittingEmptySubsequences: false)
        for (index, piece) in pieces.enumerated() {
            var text = piece
            if index > 0 {
                let tag = try #require(unread.firstIndex(of: ">"))
                #expect(unread[...tag].lowercased().hasPrefix("<img ") && unread[...tag].lowercased().contains(".gif"))
                unread = unread[tag...].dropFirst()
                text = piece[(try #require(piece.range(of: "</video>"))).upperBound...]
            }
            #expect(unread.hasPrefix(text), "\(name): after \(index) videos")
            unread = unread.dropFirst(text.count)
        }
        #expect(unread.isEmpty)
    }
}
