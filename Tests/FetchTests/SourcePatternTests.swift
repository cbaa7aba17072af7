import Fetch
import Testing

@Suite("Source patterns match by scheme, host, port and path") struct SourcePatternTests {
    @Test(arguments: [
        ("*", "https://anything.example:8443/x?y"),
        ("*", "http://[::1]/"),
        ("example.com", "http://example.com/a.gif"),
        ("EXAMPLE.com", "https://example.com:8443/"),
        ("*.example.com", "http://a.b.example.com/"),
        ("cdn-*.example.com", "http://cdn-7.example.com/"),
        ("media*x.*.com", "http://mediaxxx.a.com/"),
        ("https://example.com", "https://example.com/"),
        ("example.com:8080", "http://example.com:8080/"),
        ("example.com/uploads", "http://example.com/uploads"),
        ("example.com/uploads", "http://example.com/uploads/a.gif"),
        ("example.com/uploads/", "http://example.com/uploads/a.gif"),
        ("example.com/up*", "http://example.com/uploads/a.gif"),
        ("https://*.example.com/a/b/", "https://x.example.com/a/b/c.gif?d"),
        ("127.0.0.1", "http://127.1/"),
        ("[::1]:8080/x", "http://[0::1]:8080/x/y"),
        ("example.com/a(b)/", "http://example.com/a%28b%29/c.gif"),
    ])
    func patternMatches(pattern: String, url: String) throws {
        let pattern = try #require(SourcePattern(pattern))
        #expect(try pattern.matches(SourceURL(url)))
    }

    @Test(arguments: [
        ("example.com", "http://example.com.evil.example/"),
        ("example.com", "http://notexample.com/"),
        ("*.example.com", "http://example.com/"),
        ("*.example.com", "http://badexample.com/"),
        ("cdn-*.example.com", "http://cdn-a.b.example.com/"),
        ("*.0.0.com", "http://10.0.0.1/"),
        ("https://example.com", "http://example.com/"),
        ("example.com:8080", "http://example.com/"),
        ("example.com/uploads", "http://example.com/uploads2/a.gif"),
        ("example.com/uploads/", "http://example.com/uploads"),
        ("example.com/uploads", "http://example.com/Uploads/a.gif"),
        ("example.com/uploads", "http://example.com/uploads/%2e%2e/secret.gif"),
        ("example.com/uploads", "http://example.com/uploads/..%2fsecret.gif"),
        ("example.com/uploads", "http://example.com/uploads/..%5Csecret.gif"),
        ("example.com/uploads", "http://example.com/?/uploads/"),
        ("example.com/uploads", "http://example.com/uploads/..;x/secret.gif"),
        ("example.com/uploads", "http://example.com/uploads/%252e%252e/secret.gif"),
        ("file:///uploads/", "http://localhost/uploads/a.gif"),
        ("file:///", "http://localhost/uploads/a.gif"),
    ])
    func patternDoesNotMatch(pattern: String, url: String) throws {
        let pattern = try #require(SourcePattern(pattern))
        #expect(try !pattern.matches(SourceURL(url)))
    }

    @Test(arguments: [
        ("*", true), ("file:///srv/", true), ("file:///srv/gifs/a*", true), ("file:///srv/b", false), ("localhost", false),
        ("*.*", false),
    ])
    func onlySomePatternsMatchAFile(pattern: String, matches: Bool) throws {
        let file = try MountRule(SourceURL(directory: "/srv/gifs/")).source("file:///srv/gifs/a.gif")
        #expect(try #require(SourcePattern(pattern)).matches(file) == matches)
    }

    @Test(arguments: [
        ("*", true), ("pics.s3.example/up/", true), ("https://pics.s3.example", true), ("pics.s3.example/x", false),
    ])
    func anObjectIsMatchedByTheURLOfItsService(pattern: String, matches: Bool) throws {
        let folder = try SourceURL(bucketFolder: "s3://pics/up", of: "pics", at: "https://pics.s3.example/")
        let object = try MountRule(folder).source("s3://pics/up/a.gif")
        #expect(try #require(SourcePattern(pattern)).matches(object) == matches)
    }

    @Test(arguments: [
        "", "file://host/x", "ftp://example.com", "exa mple.com", "example..com", "example.com:0", "example.com:x", "*.1",
        "/uploads",
        "example.com/a*b", "example.com/a?b", "user@example.com",
    ])
    func malformedPatternIsRefused(text: String) {
        #expect(SourcePattern(text) == nil)
    }
}
