import Markup
import Testing

@testable import Prewarm

@Suite("Lists of sources in every form") struct PrewarmListTests {
    private func urls(_ text: String, format: PrewarmList.Format? = nil, base: String? = nil) throws -> [String] {
        try PrewarmList(Array(text.utf8), format: format, base: base).entries.map(\.url)
    }

    @Test func plainLinesLeaveCommentsAndSpacesOut() throws {
        #expect(
            try urls("# a list\n http://a/1.gif \r\n\n\u{FEFF}http://a/2.gif#x") == ["http://a/1.gif", "http://a/2.gif#x"])
    }

    @Test func aLineInAnotherEncodingIsNamed() throws {
        func list(_ second: [UInt8]) throws -> [String] {
            try PrewarmList(Array("http://a/1.gif\r\n".utf8) + second).entries.map(\.url)
        }
        let latin = Array("http://a/caf".utf8) + [0xE9] + Array(".gif".utf8)
        #expect {
            try list(latin)
        } throws: {
            "\($0)" == "Line 2 is not UTF-8."
        }
        #expect(try list([UInt8(ascii: "#")] + latin) == ["http://a/1.gif"])
        #expect(try list(Array("http://a/café.gif".utf8)) == ["http://a/1.gif", "http://a/café.gif"])
    }

    @Test(arguments: [("urlset", "url", "gif"), ("sitemapindex", "sitemap", "xml")])
    func anAddressOfASitemapInAnotherEncodingIsNamed(_ root: String, _ element: String, _ suffix: String) throws {
        func sitemap(_ letter: [UInt8], _ suffix: String) throws -> PrewarmList {
            let start = "<?xml version='1.0' encoding='iso-8859-1'?><\(root)><\(element)><loc>http://a/caf"
            return try PrewarmList(Array(start.utf8) + letter + Array(".\(suffix)</loc></\(element)></\(root)>".utf8))
        }
        #expect {
            try sitemap([0xE9], suffix)
        } throws: {
            "\($0)" == "The address http://a/caf\u{FFFD}.\(suffix) is not UTF-8."
        }
        let list = try sitemap(Array("é".utf8), suffix)
        #expect(list.entries.map(\.url) + list.sitemaps == ["http://a/café.\(suffix)"])
        // Pages are not fetched.
        if root == "urlset" { #expect(try sitemap([0xE9], "html").entries.isEmpty) }
    }

    @Test func aFeedGivesItsEnclosures() throws {
        let text = """
            <?xml version="1.0"?><rss version="2.0"><channel><link>http://a/</link>
            <item><enclosure url="http://a/1.gif" type="image/gif"/><media:content url="http://a/2.gif?x=1&amp;y=2"/></item>
            <item><enclosure url="http://a/1.mp3" type="audio/mpeg"/></item></channel></rss>
            """
        #expect(try urls(text) == ["http://a/1.gif", "http://a/2.gif?x=1&y=2"])
    }

    @Test(arguments: [
        "<description>&lt;p&gt;Look: &lt;img src=&quot;http://a/1.gif?x=1&amp;amp;y=2&quot;&gt;&lt;/p&gt;</description>",
        "<content:encoded><![CDATA[<img src='http://a/1.gif?x=1&amp;y=2'>]]></content:encoded>",
        "<content:encoded>\n<![CDATA[a > b <img src='http://a/1.gif?x=1&amp;y=2'>]]></content:encoded>",
        "<summary>&lt;script&gt; and &lt;img src='http://a/</summary><content>&lt;img src='http://a/1.gif?x=1&amp;y=2'></content>",
    ])
    func theTextsOfAFeedAreHTML(_ element: String) throws {
        for root in ["rss", "feed", "rdf:RDF"] {
            let text = "<?xml version='1.0'?><\(root)><entry>\(element)<enclosure url='http://a/2.gif'/></entry></\(root)>"
            #expect(try urls(text) == ["http://a/1.gif?x=1&y=2", "http://a/2.gif"], "\(root)")
        }
        // An article shows markup as text.
        #expect(try urls("<html><p>\(element)</p><img src='http://a/2.gif'>").last == "http://a/2.gif")
        #expect(try urls("<html><p>&lt;img src='http://a/1.gif'&gt;</p>").isEmpty)
    }

    @Test(arguments: [
        "<wp:attachment_url>http://a/1.gif?x=1&amp;y=2</wp:attachment_url>",
        "<wp:attachment_url>\n<![CDATA[http://a/1.gif?x=1&y=2]]>\n</wp:attachment_url>",
        "<guid isPermaLink='false'>http://a/1.gif?x=1&amp;y=2</guid><title>a://b c.gif</title><title>1.gif</title>",
        "<image><url>http://a/1.gif?x=1&amp;y=2</url></image><link>http://a/</link>",
    ])
    func aTextOfAFeedMayBeAnAddress(_ element: String) throws {
        let text = "<?xml version='1.0'?><rss><channel>\(element)<enclosure url='http://a/2.gif'/></channel></rss>"
        for base in [nil, "http://b/"] {
            let urls = try PrewarmList(Array(text.utf8), base: base).entries.map(\.url)
            #expect(urls == ["http://a/1.gif?x=1&y=2", "http://a/2.gif"])
        }
        // A page writes about it.
        #expect(try urls("<html><p>http://a/1.gif</p>").isEmpty)
    }

    @Test func objectsBringTheirOptions() throws {
        let text =
            #"{"url":"http://a/1.gif","width":480,"quality":"70"}"# + "\n\n"
            + #"{"url":"http://a/2.gif","format":"jpg","speed":1.5}"#
        let entries = try PrewarmList(Array(text.utf8)).entries
        #expect(
            entries == [
                PrewarmEntry(url: "http://a/1.gif", options: ["width": "480", "quality": "70"]),
                PrewarmEntry(url: "http://a/2.gif", format: "jpg", options: ["speed": "1.5"]),
            ])
    }

    @Test func aListOfObjectsIsTheSame() throws {
        #expect(
            try urls(#" [{"url":"http://a/1.gif"}, {"url":"http://a/2.gif"}]"#) == ["http://a/1.gif", "http://a/2.gif"])
        #expect(try urls("\u{FEFF}[{\"url\":\"http://a/1.gif\"},\r\n{\"url\":\"http://a/2.gif\"}]").count == 2)
    }

    @Test func aLineThatIsNoObjectIsNamed() {
        #expect {
            try PrewarmList(Array("{\"url\":\"http://a/1.gif\"}\n{\"link\":1}\n".utf8))
        } throws: {
            "\($0)".contains("Line 2")
        }
    }

    @Test func aSitemapGivesItsGIFsAndImages() throws {
        let text = """
            <?xml version="1.0" encoding="UTF-8"?>
            <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
              <url><loc>http://a/page.html</loc>
                <image:image><image:loc> http://a/i.gif?x=1&amp;y=2 </image:loc></image:image>
                <image:image><image:loc>http://a/i.png</image:loc></image:image>
                <video:video><video:thumbnail_loc>http://a/v.gif</video:thumbnail_loc></video:video></url>
              <!-- <url><loc>http://a/old.gif</loc></url> -->
              <url><loc><![CDATA[http://a/B.GIF]]></loc></url>
            </urlset>
            """
        #expect(try urls(text) == ["http://a/i.gif?x=1&y=2", "http://a/v.gif", "http://a/B.GIF"])
    }

    @Test(arguments: [
        ("<loc>\n http://a/&#49;.gif \n</loc>", "http://a/1.gif"), ("<LOC>http://a/1.gif<br>", "http://a/1.gif"),
        ("<loc> <![CDATA[ http://a/1.gif?a&amp;b ]]>\n</loc>", "http://a/1.gif?a&amp;b"),
        ("<loc>http://a/2 > 1.gif</loc>", "http://a/2 > 1.gif"),
    ])
    func theAddressInASitemapIsTheTextUpToTheNextTag(_ text: String, _ url: String) throws {
        #expect(try urls("<urlset><url>\(text)</url></urlset>") == [url])
    }

    @Test func aLongSitemapIsReadInPieces() throws {
        let locations = (0..<5000).map { "<url><loc>http://a/\($0).gif</loc></url>" }
        #expect(try urls("<urlset>\(locations.joined())</urlset>") == (0..<5000).map { "http://a/\($0).gif" })
    }

    @Test func aSitemapMayHaveAPrefix() throws {
        let start = "<?xml version='1.0'?><sm:urlset xmlns:sm='http://www.sitemaps.org/schemas/sitemap/0.9'>"
        let page = "<sm:url><sm:loc>http://a/1.gif</sm:loc></sm:url>"
        #expect(try urls(start + page + "</sm:urlset>") == ["http://a/1.gif"])
        let index = "<sm:sitemapindex><sm:sitemap><sm:loc>http://a/1.xml</sm:loc></sm:sitemap></sm:sitemapindex>"
        #expect(try PrewarmList(Array(index.utf8)).sitemaps == ["http://a/1.xml"])
    }

    @Test func anIndexNamesItsSitemaps() throws {
        let text =
            "<sitemapindex><sitemap><loc>http://a/1.xml</loc></sitemap><sitemap><loc>http://a/2.xml</loc></sitemap></sitemapindex>"
        let list = try PrewarmList(Array(text.utf8))
        #expect(list.sitemaps == ["http://a/1.xml", "http://a/2.xml"] && list.entries.isEmpty)
    }

    @Test func aPageGivesWhatItShowsAndLinksTo() throws {
        let text = """
            <!doctype html><html><head><meta property="og:image" content="http://b/og.gif"></head>
            <script>var x = "<img src='http://a/no.gif'>"</script>
            <body><img src=/a.gif><IMG alt="a > b" SRC='b.gif?v=2'><a href="http://b/c.gif">c</a><a href="d.html">d</a>
            <img data-src="a.gif" srcset="e.gif 1x, f.gif 2x"><img src="/a.gif"><img src="data:image/gif;base64,R0lG">
            """
        #expect(
            try urls(text, base: "http://a/x/") == [
                "http://b/og.gif", "http://a/a.gif", "http://a/x/b.gif?v=2", "http://b/c.gif", "http://a/x/a.gif",
                "http://a/x/e.gif",
                "http://a/x/f.gif",
            ])
    }

    /// The lists of `gifreel rewrite` and of a prewarmed page are the same.
    @Test(arguments: PageRewriter.lazyNames.union(["imagesrcset"]).sorted())
    func aPageGivesWhatScriptsLoad(_ name: String) throws {
        #expect(try urls("<html><img \(name)='a.gif'>", base: "http://a/") == ["http://a/a.gif"])
    }

    @Test(arguments: [
        ("a,b.gif 1x, c.gif 2x", ["a,b.gif", "c.gif"]), ("/t/w_40,h_30/a.gif 40w,b.gif", ["/t/w_40,h_30/a.gif", "b.gif"]),
        ("a.gif,, b.gif", ["a.gif", "b.gif"]), ("a.gif x(1, 2) 1x, b.gif", ["a.gif", "b.gif"]), (" , ", []),
        ("a.gif\n1x", ["a.gif"]),
        ("a.gif x(1, b.gif", ["a.gif"]),
    ]) func theURLsOfASetExtendToASpace(_ text: String, _ names: [String]) throws {
        let expected = names.map { $0.hasPrefix("/") ? "http://a\($0)" : "http://a/\($0)" }
        #expect(try urls("<html><img srcset='\(text)'>", base: "http://a/") == expected)
    }

    @Test func linksOfAPageAreResolvedAsBrowsersDo() throws {
        let page = "<html><img src='HTTPS://b/a.gif'><img src='x\\b.gif'><img src='c\n.gif'><img src='caf&eacute;.gif'>"
        #expect(try urls(page, base: "http://a/") == ["HTTPS://b/a.gif", "http://a/x/b.gif", "http://a/c.gif"])
        #expect(try urls("<html><img src='caf\u{e9}%20x.gif'>", base: "http://a/") == ["http://a/caf%C3%A9%20x.gif"])
        let latin = Array("<html><img src='caf".utf8) + [0xE9] + Array(".gif'>".utf8)
        #expect(try PrewarmList(latin, base: "http://a/").entries.isEmpty)
    }

    @Test func aPageMayNameItsOwnBase() throws {
        #expect(try urls("<html><base href='http://c/y/'><img src=a.gif></html>") == ["http://c/y/a.gif"])
        #expect(
            try urls("<html><base target=_top><base href='/x/'><base href='/y/'><img src=a.gif>", base: "http://a/") == [
                "http://a/x/a.gif"
            ])
        #expect(try urls("<html><img src=a.gif></html>").isEmpty)
    }

    @Test(arguments: [
        "<", "<a", "<a href", "<a href=", "<a href='x", "<!--", "<![CDATA[", "</", "<img src=a.gif", "<loc>&#xZZ;&",
    ])
    func truncatedMarkupIsReadToItsEnd(_ text: String) throws {
        _ = try PrewarmList(Array(text.utf8), format: .html)
        _ = try PrewarmList(Array(text.utf8), format: .sitemap)
    }

    @Test(arguments: [
        ("http://a/1.gif", PrewarmList.Format.lines), ("", .lines), ("  {\"url\":1}", .ndjson), ("[", .ndjson),
        ("<?xml version='1.0'?><urlset>", .sitemap), ("\n<sitemapindex>", .sitemap), ("<!doctype html><p>", .html),
    ])
    func theFormatOfAListIsGuessedFromItsText(_ text: String, _ format: PrewarmList.Format) {
        #expect(PrewarmList.Format.guess(Array(text.utf8)) == format)
    }
}
