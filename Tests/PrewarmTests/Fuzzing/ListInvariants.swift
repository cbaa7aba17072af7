#if !FUZZ
    @testable import Prewarm
#endif

/// What must hold of the parsers of lists, whatever they contain. The fuzzer looks for a list for which it does not hold.
enum ListInvariants {
    /// The syntaxes by the first byte of an input; nil has the parser guess.
    static let formats: [PrewarmList.Format?] = [nil] + PrewarmList.Format.allCases

    private static let base = "https://example.com/pages/"

    /// The first invariant that does not hold, in words; nil if all do.
    ///
    /// - Parameter bytes: A byte that names the syntax, and the list.
    static func violation(_ bytes: UnsafeRawBufferPointer) -> String? {
        guard let first = bytes.first else { return nil }
        let text = [UInt8](bytes.dropFirst())
        let format = formats[Int(first) % formats.count]
        do throws(PrewarmList.Malformed) {
            let template = PrewarmEntry(url: "", format: "webm", options: ["width": "96"])
            let list = try PrewarmList(text, format: format, base: base, template: template)
            guard list.entries.count + list.sitemaps.count <= text.count else { return "\(list.entries.count) entries" }
            if let violation = content(list, of: format ?? .guess(text), template) { return violation }
            return try again(list, format, text, template)
        } catch {
            return error.description.hasSuffix(".") ? nil : "not a sentence: \(error)"
        }
    }

    private static func content(
        _ list: PrewarmList, of format: PrewarmList.Format, _ template: PrewarmEntry
    ) -> String? {
        guard format == .sitemap || list.sitemaps.isEmpty else { return "sitemaps in \(format.rawValue)" }
        let urls = list.entries.map(\.url)
        if format != .ndjson {
            for entry in list.entries where entry.format != template.format || entry.options != template.options {
                return "an entry without the options of the list: \(entry)"
            }
        }
        switch format {
        case .lines:
            for url in urls where url.isEmpty || url.hasPrefix("#") || url.contains(where: \.isNewline) { return "line \(url)" }
        case .sitemap:
            for url in urls where !LinkedAnimations.isAnimation(url) { return "not an animation: \(url)" }
        case .html:
            for url in urls where !["http:", "https:"].contains(where: url.lowercased().hasPrefix) {
                return "not absolute: \(url)"
            }
            guard Set(urls).count == urls.count else { return "an animation twice: \(urls)" }
        case .ndjson: break
        }
        // An entry that cannot be made has an identity as well.
        for entry in list.entries where entry.identity(nil).isEmpty { return "no identity: \(entry)" }
        return nil
    }

    /// The same text gives the same list, and so do its addresses as lines.
    private static func again(
        _ list: PrewarmList, _ format: PrewarmList.Format?, _ text: [UInt8], _ template: PrewarmEntry
    ) throws(PrewarmList.Malformed) -> String? {
        guard try PrewarmList(text, format: format, base: base, template: template) == list else { return "another list" }
        guard format == .lines else { return nil }
        let lines = Array(list.entries.map(\.url).joined(separator: "\n").utf8)
        let copy = try PrewarmList(lines, format: .lines, base: base, template: template)
        return copy == list ? nil : "its lines are another list: \(list.entries) \(copy.entries)"
    }
}

/// The first inputs of the fuzzer.
enum ListSeeds {
    static let all: [[UInt8]] = texts.flatMap { text in
        // Each text with its own syntax, and with the one that is guessed.
        [[UInt8(text.format)] + Array(text.text.utf8), [0] + Array(text.text.utf8)]
    }

    private static let texts: [(format: Int, text: String)] = [
        (1, "https://example.com/a.gif\n# comment\n\n  https://example.com/b.gif \r\n\u{FEFF}c\n"),
        (2, "{\"url\":\"https://example.com/a.gif\",\"format\":\"webm\",\"width\":96,\"speed\":1.5}\n\n{\"url\":\"b\"}\n"),
        (2, "[{\"url\":\"https://example.com/a.gif\"},{\"url\":\"x\",\"preset\":\"p\",\"quality\":\"high\"}]"),
        (2, "{\"url\":1}\n"),
        (
            3,
            "<?xml version=\"1.0\"?><urlset xmlns:image=\"i\"><url><loc>https://example.com/a.gif</loc><image:image>"
                + "<image:loc> https://example.com/&#98;.webp?x=1&amp;y </image:loc></image:image></url></urlset>"
        ),
        (
            3,
            "<sitemapindex><sitemap><loc>https://example.com/1.xml</loc></sitemap><sitemap><loc><![CDATA[https://e.com/2.xml]]>"
                + "</loc></sitemap></sitemapindex>"
        ),
        (
            4,
            "<!doctype html><base href=\"/x/\"><img src=a.gif srcset='b.gif 2x, c.webp 100w'><a href=\"d.GIF#e\">f</a>"
                + "<video poster=g.gif></video><!-- <img src=h.gif> --><script>'<img src=i.gif>'</script>"
        ),
        (
            4,
            "<meta content='https://e.com/a.gif'><img data-src=//e.com/b.gif data-original=\"&#x2e;/c.gif\" src='http://[::1'>"
        ),
    ]
}
