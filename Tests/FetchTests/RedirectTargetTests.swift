import Testing

@testable import Fetch

@Suite("Locations are resolved to URLs of sources") struct RedirectTargetTests {
    private let base = "http://example.com/a/b.gif?c=d"

    @Test(arguments: [
        ("/x.gif", "http://example.com/x.gif"),
        ("x.gif", "http://example.com/a/x.gif"),
        ("../x.gif", "http://example.com/x.gif"),
        ("//other.example/x.gif", "http://other.example/x.gif"),
        ("https://other.example/x.gif#y", "https://other.example/x.gif"),
        ("HTTP://OTHER.example:80/", "http://other.example/"),
        ("?e=f", "http://example.com/a/b.gif?e=f"),
        ("/with space/é.gif", "http://example.com/with%20space/%C3%A9.gif"),
        ("//127.1/", "http://127.0.0.1/"),
    ])
    func locationIsResolvedAgainstTheURL(location: String, target: String) throws {
        #expect(try SourceURL(base).following(location: Array(location.utf8)).canonical == target)
    }

    @Test(arguments: [
        "gopher://127.0.0.1:6379/", "file:///etc/passwd", "http://user@example.com/", "/\\other.example", "/a\rb",
        "http://[::1%25lo]/",
    ])
    func locationThatIsNoSourceIsRefused(location: String) throws {
        let url = try SourceURL(base)
        #expect(throws: SourceURLError.self) { try url.following(location: Array(location.utf8)) }
    }

    @Test func bytesThatAreNotUTF8AreEncoded() throws {
        let target = try SourceURL(base).following(location: [0x2f, 0xe9])
        #expect(target.canonical == "http://example.com/%E9")
    }
}
