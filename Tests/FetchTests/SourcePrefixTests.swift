import Testing

@testable import Fetch

@Suite("The beginning of a source URL has one canonical form") struct SourcePrefixTests {
    @Test(arguments: [
        ("http://example.com/f/%c3%bc/", "http://example.com/f/%C3%BC/"),
        ("http://example.com/f/ü/", "http://example.com/f/%C3%BC/"),
        ("http://example.com/f/%7Ex", "http://example.com/f/~x"),
        ("http://example.com/f/a b/", "http://example.com/f/a%20b/"),
        ("http://example.com/100%x", "http://example.com/100%25x"),
        ("http://example.com/g/../f/./", "http://example.com/f/"),
        ("http://example.com/g/%2e%2E/f", "http://example.com/f"),
        // The last segment may continue.
        ("http://example.com/f/..", "http://example.com/f/.."),
        ("http://example.com/f/.", "http://example.com/f/."),
        ("http://example.com/f/ima", "http://example.com/f/ima"),
        ("http://example.com/f/..?v=", "http://example.com/?v="),
        ("http://example.com/a?q=é%2", "http://example.com/a?q=%C3%A9%2"),
        ("http://example.com/a?q=%c3%a", "http://example.com/a?q=%C3%A"),
        ("http://b%C3%BCcher.example/a", "http://xn--bcher-kva.example/a"),
        ("http://example.com?v", "http://example.com/?v"),
        ("HTTP://EXAMPLE.com:80/A", "http://example.com/A"),
        ("http://EXAMPLE.com", "http://example.com"),
        ("http://Exam", "http://exam"),
        ("http://example.com:80", "http://example.com/"),
        ("https://example.com:80", "https://example.com:80"),
        ("http://10.1", "http://10.1"),
        ("http://a_b-1.", "http://a_b-1."), ("http://example.com:018961", "http://example.com:18961"),
        ("http://Example.com:8", "http://example.com:8"), ("http://Example.com:", "http://example.com:"),
        ("http://[2001:DB8", "http://[2001:db8"), ("http://[2001:80", "http://[2001:80"),
        ("http://[2001:DB8:0::1]", "http://[2001:db8::1]"), ("http://[::1]:08080", "http://[::1]:8080"),
        ("http://bücher.example:8080", "http://xn--bcher-kva.example:8080"),
        ("http://bücher.example/a", "http://xn--bcher-kva.example/a"),
        ("HTTPS://", "https://"), ("http", "http"), ("s3:", "s3:"),
        ("S3://Pics", "s3://Pics"),
        ("s3://pics/f/%c3%bc/a b+", "s3://pics/f/%C3%BC/a%20b%2B"),
        ("s3://pics/g/../f/", "s3://pics/f/"),
        ("FILE:///srv/%c3%bc/a b+", "file:///srv/%C3%BC/a%20b%2B"), ("file:///srv/x/../y", "file:///srv/y"), ("fil", "fil"),
    ])
    func prefixHasItsCanonicalForm(text: String, canonical: String) throws {
        #expect(try SourceURL.canonicalPrefix(of: text) == canonical)
        #expect(try SourceURL.canonicalPrefix(of: canonical) == canonical)
    }

    @Test(arguments: [
        ("ftp://example.com/", SourceURLError.unsupportedScheme), ("example.com/", .unsupportedScheme),
        ("http:///a", .badHost), ("http://u@example.com/", .credentials), ("http://example.com:0/", .badPort),
        ("http://example.com/a#b", .malformed), ("http://example.com/%", .malformed), ("http://example.com/%C3%B", .malformed),
        ("http://u@example.com", .credentials), ("http://u:80@example.com", .credentials), ("http://exa mple.com", .badHost),
        ("http://%31", .badHost), ("http://a\\b", .badHost), ("http://example.com\u{c}", .badHost),
        // The beginning of a name is not that of its converted form.
        ("http://münch", .badHost), ("http://bücher.example", .badHost),
        ("http://127.0.0.1:99999", .badPort), ("http://a:0", .badPort), ("http://a:b:c", .badPort),
        ("http://127.0.0.1:18961\u{c}", .badPort), ("http://:80", .badHost), ("http://[::1]x", .badHost),
        ("http://[g", .badHost), ("s3://pics/a?b", .malformed), ("s3://pics/%C", .malformed),
        ("file://host/a", .badHost), ("file:///a?b", .malformed),
    ])
    func prefixOfNoSourceIsRefused(text: String, error: SourceURLError) {
        #expect(throws: error) { try SourceURL.canonicalPrefix(of: text) }
    }

    @Test(arguments: [
        "http://example.com/f/ü/a.gif", "http://EXAMPLE.com/g/../%7Ex/a%20b.gif", "https://example.com:443/a.gif?v=%7e",
    ])
    func everyPrefixUpToASlashCoversItsURL(text: String) throws {
        let canonical = try SourceURL(text).canonical
        let slashes = text.indices.filter { text[$0] == "/" }.dropFirst(2)
        for slash in slashes where !text[slash...].contains("/../") {
            let prefix = try SourceURL.canonicalPrefix(of: String(text[...slash]))
            #expect(canonical.hasPrefix(prefix), "\(prefix)")
        }
    }
}
