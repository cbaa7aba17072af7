import HTTP
import Fetch
import Media
import Renditions
import Testing

@testable import Web

@Suite("The player page as HTML") struct PlayerPageTests {
    private let hostile = "\"><script>alert(1)</script>'&\u{202e}\u{0}.gif"

    private func links(
        _ target: String = "/html/https://a.test/a.gif", _ options: [(String, String)] = [],
        source: String = "https://a.test/a.gif", publicURL: String? = nil, host: String? = "gifs.test:8080"
    ) throws -> PageLinks {
        var rendition = Rendition(format: .html)
        for (name, value) in options { try rendition.set(name, to: value) }
        let url = try SourceURL(source)
        var asked = ParsedTarget(route: .rendition(rendition, url))
        if target.hasPrefix("/media/") {
            asked.address = MountAddress(stem: String(target.prefix { $0 != "?" }.dropLast(".html".count)))
        }
        return PageLinks(
            target: target, namedTarget: target, base: PageLinks.base(publicURL: publicURL, scheme: .http, host: host),
            root: publicURL.map(PageLinks.path) ?? "", RenditionAddresses(asked, of: url, keys: SigningKeys()),
            video: rendition.inFormat(.mp4), encodings: [(rendition.inFormat(.mp4), nil)], poster: rendition.inFormat(.jpg))
    }

    private func contents(_ links: PageLinks, name: String = "a.gif", playCount: Int? = nil) -> PlayerPage.Contents {
        PlayerPage.Contents(
            name: name, links: links, width: 34, height: 22, posterWidth: 33, posterHeight: 21, playCount: playCount)
    }

    private func query(_ maxWidth: Int?, _ maxHeight: Int?) throws -> OEmbed.Query {
        var items = [QueryItem(name: "url", value: "u")]
        if let maxWidth { items.append(QueryItem(name: "maxwidth", value: String(maxWidth))) }
        if let maxHeight { items.append(QueryItem(name: "maxheight", value: String(maxHeight))) }
        return try OEmbed.Query(items)
    }

    @Test func theVideoPlaysByItselfWithoutALayoutShift() throws {
        let text = PlayerPage().html(contents(try links()))
        #expect(text.contains("<video id=\"video\" autoplay loop muted playsinline "))
        #expect(text.contains(" poster=\"/jpg/https://a.test/a.gif\" width=\"34\" height=\"22\" aria-label="))
        #expect(text.contains("<source src=\"/mp4/https://a.test/a.gif\" type=\"video/mp4\""))
        #expect(
            text.contains(
                "<meta property=\"og:video\" content=\"http://gifs.test:8080/mp4/a.mp4?url=https%3A%2F%2Fa.test%2Fa.gif\">"))
        #expect(text.contains("<meta property=\"og:image:width\" content=\"33\">"))
        for alternative in ["property=\"og:image:alt\"", "name=\"twitter:image:alt\""] {
            #expect(text.contains("<meta \(alternative) content=\"a.gif\">"))
        }
        #expect(text.contains("/oembed?url=http%3A%2F%2Fgifs.test%3A8080%2Fhtml%2Fhttps%3A%2F%2Fa.test%2Fa.gif\""))
        #expect(!text.contains("{{") && !text.contains("secure_url"))
    }

    @Test func thePreviewNamesTheServiceIfTheSettingsDo() throws {
        let plain = PlayerPage().html(contents(try links()))
        // Without a description, programs take the first paragraph.
        #expect(!plain.contains("og:site_name") && !plain.contains("<p>") && !plain.contains("<p "))
        let preview = LinkPreview(siteName: "A & B", description: "GIFs", twitterSite: "@a")
        let text = PlayerPage(preview).html(contents(try links()))
        #expect(text.contains("<meta property=\"og:site_name\" content=\"A &amp; B\">"))
        #expect(text.contains("<meta property=\"og:description\" content=\"GIFs\">"))
        #expect(text.contains("<meta name=\"twitter:site\" content=\"@a\">"))
    }

    @Test func theVideoPlaysAsOftenAsTheGIF() throws {
        let page = PlayerPage()
        #expect(!page.html(contents(try links(), playCount: 1)).contains("autoplay loop"))
        #expect(page.html(contents(try links(), playCount: 1)).contains(" data-plays=\"1\""))
        let thrice = page.html(contents(try links(), playCount: 3))
        #expect(thrice.contains("autoplay loop") && thrice.contains(" data-plays=\"3\""))
        #expect(!page.html(contents(try links())).contains("data-plays="))
        #expect(PlayCount.of(loopCount: nil, repetitions: 1) == 1)
        #expect(PlayCount.of(loopCount: 0, repetitions: 5) == nil)
        #expect(PlayCount.of(loopCount: 2, repetitions: 1) == 3)
        #expect(PlayCount.of(loopCount: 4, repetitions: 2) == 3)
    }

    @Test func untrustedTextDoesNotBecomeMarkup() throws {
        let hostileLinks = try links(
            "/html/https://a.test/a.gif?\"><script>alert(2)</script>", source: "https://a.test/a.gif?'%22onload=alert(3)",
            host: "x\"><b>")
        let text = PlayerPage().html(contents(hostileLinks, name: hostile))
        #expect(
            !text.contains("<script>alert") && !text.contains("<b>") && !text.contains("\u{202e}") && !text.contains("\u{0}"))
        #expect(text.contains("<title>&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&#39;&amp;\u{fffd}\u{fffd}.gif</title>"))
        let embed = OEmbed(
            contents(hostileLinks, name: hostile), try query(nil, nil), hasThumbnail: true, maxAge: 60)
        #expect(!embed.html.contains("<script>") && embed.html.hasPrefix("<iframe src=\"http://x&quot;&gt;&lt;b&gt;/html/"))
    }

    @Test func theVideoAndThePosterHaveTheOptionsOfThePage() throws {
        let options = [("width", "320"), ("speed", "2"), ("bg", "000000")]
        let links = try links("/html,width=320,speed=2,bg=000000/https://a.test/a.gif", options)
        #expect(links.video == "/mp4,bg=000000,speed=2,width=320/https://a.test/a.gif")
        #expect(links.poster == "/jpg,bg=000000,width=320/https://a.test/a.gif")
    }

    @Test func thePageOfAMountLinksBelowTheMount() throws {
        let links = try links("/media/x/a.html?speed=2&quality=80", [("speed", "2"), ("quality", "80")])
        #expect(links.video == "/media/x/a.mp4?quality=80&speed=2" && links.poster == "/media/x/a.jpg?quality=80")
        let form = try self.links("/html?url=https%3A%2F%2Fa.test%2Fa.html", source: "https://a.test/a.html")
        #expect(form.video == "/mp4/https://a.test/a.html")
    }

    @Test func absoluteAddressesBeginWithThePublicURL() throws {
        let links = try links(publicURL: "https://gifs.example.com/reel")
        #expect(links.pageAddress == "https://gifs.example.com/reel/html/https://a.test/a.gif" && links.root == "/reel")
        let text = PlayerPage().html(contents(links))
        #expect(text.contains(" poster=\"/reel/jpg/https://a.test/a.gif\""))
        #expect(text.contains("<meta property=\"og:video:secure_url\" content=\"https://gifs.example.com/reel/mp4/"))
    }

    /// The names of the placeholders of a template, in order.
    private func placeholders(_ template: [UInt8]) -> [String] {
        String(decoding: template, as: UTF8.self).matches(of: /\{\{(.*?)\}\}/).map { String($0.1) }
    }

    @Test func everyPlaceholderIsFilled() {
        let templates = [
            PackageResources.player_html, PackageResources.player_video_html, PackageResources.player_picture_html,
            PackageResources.player_source_html, PackageResources.player_blur_html, PackageResources.player_image_html,
            PackageResources.player_video_tags_html,
        ]
        let places = Set(templates.flatMap(placeholders))
        let filled: Set = [
            "title", "page", "oembed", "video", "video_address", "poster", "poster_address", "width", "height",
            "poster_width", "poster_height", "style", "script", "loop", "plays", "secure_video", "media", "sources",
            "source",
            "type", "blur", "player", "description", "site_name", "twitter_site", "image", "still", "label",
            "og_type", "card", "video_tags", "blurhash",
        ]
        #expect(places == filled)
        #expect(
            Set(placeholders(PackageResources.home_html)) == [
                "style", "script", "max_bytes", "max_size", "version", "formats", "format_buttons", "options",
            ])
        #expect(placeholders(PackageResources.home_options_html) == ["dither_choices"])
        #expect(Set(placeholders(PackageResources.signed_html)) == ["style", "version"])
        let error = ErrorPage(version: "1").html(Problem(404, "source_not_found", "<b>"))
        #expect(error.contains("&lt;b&gt;") && error.contains("Error 404") && !error.contains("{{"))
    }

    @Test(
        arguments: [
            (nil, nil, 34, 22), (17, nil, 17, 11), (nil, 11, 17, 11), (17, 5, 7, 5), (1000, 1000, 34, 22), (1, nil, 1, 1),
        ] as [(Int?, Int?, Int, Int)]) func anEmbeddedPlayerKeepsItsShape(
            _ maxWidth: Int?, _ maxHeight: Int?, _ width: Int, _ height: Int
        ) throws
    {
        let embed = OEmbed(contents(try links()), try query(maxWidth, maxHeight), hasThumbnail: false, maxAge: 60)
        #expect(embed.width == width && embed.height == height && embed.thumbnailUrl == nil)
    }

    @Test func oEmbedAcceptsTheParametersOfItsSpecification() throws {
        let query = try OEmbed.Query([
            QueryItem(name: "url", value: "u"), QueryItem(name: "maxwidth", value: "300"),
            QueryItem(name: "format", value: "json"),
            QueryItem(name: "dnt", value: "1"),
        ])
        #expect(query.url == "u" && query.maxWidth == 300 && query.maxHeight == nil)
        for (name, value, status) in [
            ("format", "xml", 501), ("maxwidth", "0", 400), ("maxheight", "-1", 400), ("none", "", 400),
        ] {
            #expect {
                try OEmbed.Query(
                    (name == "none" ? [] : [QueryItem(name: "url", value: "u")]) + [QueryItem(name: name, value: value)])
            } throws: { ($0 as? Problem)?.status == status }
        }
    }
}
