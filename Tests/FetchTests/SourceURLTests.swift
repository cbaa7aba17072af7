import TestSupport
import Testing

@testable import Fetch

@Suite("Source URLs have one canonical form") struct SourceURLTests {
    @Test(arguments: [
        ("http://example.com", "http://example.com/"),
        ("HTTP://EXAMPLE.com:80/A.gif", "http://example.com/A.gif"),
        ("https://example.com:443/a.gif", "https://example.com/a.gif"),
        ("https://example.com:80/a.gif", "https://example.com:80/a.gif"),
        ("http://example.com:0080/a.gif", "http://example.com/a.gif"),
        ("http://example.com:/a.gif", "http://example.com/a.gif"),
        ("http://example.com/a.gif#part", "http://example.com/a.gif"),
        ("http://example.com/a.gif?", "http://example.com/a.gif"),
        ("http://example.com?v=2", "http://example.com/?v=2"),
        ("http://example.com/a/./b/../c.gif", "http://example.com/a/c.gif"),
        ("http://example.com/a/%2e%2E/c.gif", "http://example.com/c.gif"),
        ("http://example.com/../../c.gif", "http://example.com/c.gif"),
        ("http://example.com//a//..//c.gif", "http://example.com//a//c.gif"),
        ("http://example.com/a/..", "http://example.com/"),
        ("http://example.com/%7Ejoe/%c3%a9.gif", "http://example.com/~joe/%C3%A9.gif"),
        ("http://example.com/é|\"<>.gif", "http://example.com/%C3%A9%7C%22%3C%3E.gif"),
        ("http://example.com/100%.gif", "http://example.com/100%25.gif"),
        ("http://example.com/%4%44?%4%44", "http://example.com/%254D?%4%44"),
        ("http://example.com/a%2Fb.gif", "http://example.com/a%2Fb.gif"),
        (
            "http://example.com/a.gif?sig=%2d%7e&u=http://127.0.0.1/&a[]=1",
            "http://example.com/a.gif?sig=%2D%7E&u=http://127.0.0.1/&a[]=1"
        ),
        ("http://example.com/a.gif?q=é", "http://example.com/a.gif?q=%C3%A9"),
        ("http://example.com/a?b?c#d?e", "http://example.com/a?b?c"),
        ("http://example.com./a.gif", "http://example.com/a.gif"),
        ("http://a_b.example.com/a.gif", "http://a_b.example.com/a.gif"),
        ("http://redis/a.gif", "http://redis/a.gif"),
        ("http://bücher.example/a.gif", "http://xn--bcher-kva.example/a.gif"),
        ("http://b%C3%BCcher.example:8080/%C3%A9?%C3", "http://xn--bcher-kva.example:8080/%C3%A9?%C3"),
        ("http://b%c3%bccher%E3%80%82example", "http://xn--bcher-kva.example/"),
        ("http://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1/", "http://127.0.0.1/"),
        ("http://example.com/?a=%c3%a9%zz%c", "http://example.com/?a=%C3%A9%zz%c"),
        ("http://example.com/my cat  1.gif?x=a b#c d", "http://example.com/my%20cat%20%201.gif?x=a%20b"),
        ("http://１２７.0.0.1/", "http://127.0.0.1/"),
        ("http://①②⑦.0.0.1/", "http://127.0.0.1/"),
        ("http://example。com/", "http://example.com/"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://0x7f000001/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://017700000001/", "http://127.0.0.1/"),
        ("http://0/", "http://0.0.0.0/"),
        ("http://127.0.0.1./", "http://127.0.0.1/"),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
        ("http://[2001:DB8:0:0::1]/", "http://[2001:db8::1]/"),
        ("http://[::ffff:7f00:1]/", "http://[::ffff:127.0.0.1]/"),
    ])
    func urlHasItsCanonicalForm(text: String, canonical: String) throws {
        let url = try SourceURL(text)
        #expect(url.canonical == canonical)
        #expect(try SourceURL(canonical) == url)
    }

    @Test(arguments: [
        ("", SourceURLError.unsupportedScheme),
        ("example.com/a.gif", .unsupportedScheme),
        ("//example.com/a.gif", .unsupportedScheme),
        ("ftp://example.com/a.gif", .unsupportedScheme),
        ("FILE:///etc/passwd", .unsupportedScheme),
        ("data:image/gif;base64,R0lGODlhAQABAAAAACw=", .unsupportedScheme),
        ("jar:http://example.com/a!/b", .unsupportedScheme),
        ("http:/example.com/a.gif", .unsupportedScheme),
        ("http:///example.com/a.gif", .badHost),
        ("http://", .badHost),
        ("http://?a", .badHost),
        ("http://./a.gif", .badHost),
        ("http://example..com/", .badHost),
        ("http://example.com../", .badHost),
        ("http://%31%32%37.0.0.1/", .badHost),
        ("http://example.com%2f@127.0.0.1/", .credentials),
        ("http://[fe80::1%25eth0]/", .badHost),
        ("http://6425673729/", .badHost),
        ("http://1.2.3.08/", .badHost),
        ("http://1.2.3.4.5/", .badHost),
        ("http://256.1.1.1/", .badHost),
        ("http://example.0x1f/", .badHost),
        ("http://user@example.com/", .credentials),
        ("http://user:word@example.com/", .credentials),
        ("http://@example.com/", .credentials),
        ("http://example.com:0/", .badPort),
        ("http://example.com:65536/", .badPort),
        ("http://example.com:8o/", .badPort),
        (" http://example.com/", .badCharacter),
        ("http://example.com/a.gif ", .badCharacter),
        ("http://exa mple.com/a.gif", .badHost),
        ("http://example.com :80/a.gif", .badHost),
        ("http://example.com: 80/a.gif", .badHost),
        ("http ://example.com/a.gif", .unsupportedScheme),
        ("http://example.com/a\r\nHost: 127.0.0.1", .badCharacter),
        ("http://example.com/a\0", .badCharacter),
        ("http://example.com/\u{7f}", .badCharacter),
        ("http://127.0.0.1\\@example.com/", .badCharacter),
    ])
    func invalidURLIsRefused(text: String, error: SourceURLError) {
        #expect(throws: error) { try SourceURL(text) }
    }

    @Test(arguments: [
        "http://example.com:80:80/", "http://example.com[::1]/", "http://[::1/", "http://exa;mple.com/", "http://a,b/",
    ])
    func malformedAuthorityIsRefused(text: String) {
        #expect(throws: SourceURLError.self) { try SourceURL(text) }
    }

    @Test func lengthIsBoundedBeforeAndAfterEncoding() throws {
        let stem = "http://example.com/"
        let longest = stem + String(repeating: "a", count: SourceURL.maxLength - stem.utf8.count)
        #expect(try SourceURL(longest).canonical == longest)
        #expect(throws: SourceURLError.tooLong(limit: 8192)) { try SourceURL(longest + "a") }
        let growing = stem + String(repeating: "|", count: 4000)
        #expect(throws: SourceURLError.tooLong(limit: 8192)) { try SourceURL(growing) }
    }

    @Test func partsBelongToTheCanonicalForm() throws {
        let url = try WebAddress("HTTPS://[2001:DB8::1]:8443/x/../a.gif?b=c#d")
        #expect(url.scheme == .https)
        #expect(url.host == "2001:db8::1")
        #expect(url.port == 8443)
        #expect(url.path == "/a.gif")
        #expect(url.query == "b=c")
    }

    /// Some origins sign the exact text of a query.
    @Test func aQueryIsFetchedAsItWasGiven() throws {
        let url = try SourceURL("http://example.com/%c3%a9?x=%c3%a9")
        #expect(url.text == "http://example.com/%C3%A9?x=%c3%a9" && url.address?.requestText == url.text)
        #expect(url.query == "x=%c3%a9")
        #expect(try url == SourceURL("http://example.com/%C3%A9?x=%C3%A9"))
    }

    @Test(arguments: [
        "http://b%FC.example/", "http://b%C3.example/", "http://b%2Eexample/", "http://b%C3%BC%2E.example/", "http://b%.x/",
    ])
    func anEncodedHostIsANameInUTF8(_ text: String) {
        #expect(throws: SourceURLError.badHost) { try SourceURL(text) }
    }

    @Test func canonicalFormOfAnyTextIsItsOwnCanonicalForm() throws {
        var random = SeededNumbers(seed: 1)
        let pieces = [
            "http://", "https://", "HTTP://", "a", "example.com", "[::1]", "127.1", "0x7f", "１", "é", "%2e", "%2E%2e", "%zz",
            "%4",
            "..",
            ".", "/", "//", "?", "#", ":", "80", "443", "@", "[", "]", "|", "~", "%7E", "+", "&", "=", "xn--", "-", "_", "%00",
            "%",
            ";",
        ]
        var accepted = 0
        for _ in 0..<5_000 {
            var text = random.next() % 8 == 0 ? "" : "http://example.com"
            for _ in 0..<(random.next() % 8) { text += pieces[Int(random.next() % UInt64(pieces.count))] }
            guard let url = try? SourceURL(text) else { continue }
            accepted += 1
            let again = try SourceURL(url.canonical)
            #expect(again.canonical == url.canonical, "\(text)")
            #expect(again.authority == url.authority && again.path == url.path, "\(text)")
            #expect(url.query.map(URLNormalization.withUpperCaseTriplets) == again.query, "\(text)")
        }
        #expect(accepted > 1_000)
    }
}
