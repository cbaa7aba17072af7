import Testing

@testable import Fetch

@Suite("Paths are compared in the forms in which origins may read them") struct SourcePathTests {
    /// Paths that one origin or another takes for the parent of the folder: nginx decodes once before it resolves, Tomcat strips
    /// parameters before that, chains of proxies decode several times, Windows drops spaces and takes backslashes for slashes.
    static let parents = [
        "..%2f", "..%2F..%2f", "..%5c", "..%5C..%5C", "%2e%2e%2f", "..;", "..;x", "..;x=1;y", "..%3B", "..%3bx", "%2e%2e;x",
        ".%2e;",
        "%252e%252e", "%25252e%25252e", "%2525252525252e.", ".%252e%252f", "..%252f", "..%255c", "%252e%252e%253bx", "..%253Bx",
        "%c0%ae%c0%ae", "%C0%AE.%c0%af", "%25c0%25ae.", "..%20", "..%3F", "..%23x", "..%00", "..%0a", "x%09y", "%2e%%32%65",
        "%%32e%252E", "a/..%2f..%2f", ";/..%3b",
    ]

    @Test(arguments: parents) func aHiddenParentIsFound(text: String) throws {
        for path in ["/up/\(text)/a.gif", "/up/\(text)", "/\(text)/a.gif", "/up//\(text)///x"] {
            let url = try WebAddress("http://a.test" + path)
            #expect(url.comparable.isAmbiguous, "\(path)")
        }
    }

    @Test(arguments: [
        "/", "/a.gif", "/..a/b..gif", "/.../a", "/a;..", "/a;x=../b", "/a%20b/c%28d%29.gif", "/.well-known/a", "/a..%2Fb",
        "/100%25",
        "/a/%C3%A9.gif", "/%E9.gif", "/x/;/y", "/a%253D", "/.%2fa",
    ])
    func otherPathsAreNot(path: String) throws {
        #expect(try !WebAddress("http://a.test" + path).comparable.isAmbiguous)
    }

    @Test(arguments: [
        ("/m/a.gif", "/m/a.gif"), ("/M//A.gif", "/m/a.gif"), ("/m%2Fa.gif", "/m/a.gif"), ("/m%255ca.gif", "/m/a.gif"),
        ("/m;v=1/a.gif;x", "/m/a.gif"), ("/m/.%2f.;/a.gif", "/m/a.gif"), ("/m%20/a.gif.", "/m/a.gif"), ("/", ""), ("//", ""),
        ("/%256D/%2561.gif", "/m/a.gif"), ("/m%c1%9ca.gif", "/m/a.gif"), ("/%%36D/a.gif", "/m/a.gif"),
    ])
    func allSpellingsOfAPathResolveToOne(path: String, resolved: String) throws {
        #expect(String(decoding: try WebAddress("http://a.test" + path).comparable.resolved, as: UTF8.self) == resolved)
    }

    @Test(arguments: [
        ("/a%28b%29", "/a(b)"), ("/a%2Fb", "/a%2Fb"), ("/a%252Fb", "/a%252Fb"), ("/%25", "/%25"), ("/a%5Cb", "/a\\b"),
    ])
    func theExactFormIsDecodedOnce(path: String, exact: String) throws {
        #expect(String(decoding: try WebAddress("http://a.test" + path).comparable.exact, as: UTF8.self) == exact)
    }

    /// An escape of an escape of an escape must not cost a pass each.
    @Test func nestedEscapesAreDecodedInOnePass() throws {
        let text = "http://a.test/%" + String(repeating: "25", count: 4000) + "2e./a"
        let start = ContinuousClock.now
        for _ in 0..<20 { #expect(try WebAddress(text).comparable.isAmbiguous) }
        // Quadratic time would be many seconds.
        #expect(ContinuousClock.now - start < .seconds(10))
    }
}

@Suite("A prefix grants what is surely below it, and protects what may be") struct PathPrefixTests {
    private func path(_ text: String) throws -> SourcePath { try WebAddress("http://a.test" + text).comparable }

    @Test(arguments: [
        ("up", "/up", true), ("up", "/up/a", true), ("up", "/up2", false), ("up/", "/up", false), ("up/", "/up/a", true),
        ("up*", "/up2", true), ("up*", "/u", false), ("up/x*", "/up/xy/z", true), ("", "/anything", true),
        ("*", "/anything", true),
        ("a(b)/", "/a%28b%29/c", true), ("a%28b%29/", "/a(b)/c", true), ("up/", "/up%2Fa", false), ("up/", "/UP/a", false),
        ("up/", "//up/a", false), ("a%2Fb/", "/a%2fb/c", true), ("a%2Fb/", "/a/b/c", false), (".*", "/.x", true),
        (".*", "/x", false),
        ("..*", "/..x/a", true), ("100%/", "/100%25/a", true),
    ])
    func grants(prefix: String, path text: String, isGranted: Bool) throws {
        #expect(try #require(PathPrefix(prefix)).grants(try path(text)) == isGranted)
    }

    @Test(arguments: SourcePathTests.parents) func nothingBelowAPrefixLeadsOut(text: String) throws {
        let path = try path("/up/\(text)/a.gif")
        for prefix in ["up", "up/", "up*", "up/*"] { #expect(try !#require(PathPrefix(prefix)).grants(path), "\(prefix)") }
        // Without a prefix there is nothing to lead out of.
        #expect(try #require(PathPrefix("")).grants(path))
        #expect(try #require(PathPrefix("other/")).mayContain(path))
    }

    @Test(arguments: [
        "/m/priv/a.gif", "/m//priv/a.gif", "//m/priv//a.gif", "/m%2Fpriv/a.gif", "/m/priv%2Fa.gif", "/m%5Cpriv/a.gif",
        "/m/.%2Fpriv/a.gif", "/m/x/..%2Fpriv/a.gif", "/x/..%2Fm/priv/a.gif", "/m/pri%76/a.gif?v=1", "/m/pri%2576/a.gif",
        "/m;x/priv;y/a.gif", "/M/PRIV/a.gif", "/m/priv%20/a.gif", "/m/priv./a.gif", "/m/priv", "/m/priv%3F/a.gif",
        "/m%252Fpriv/a.gif",
    ])
    func everySpellingIsProtected(text: String) throws {
        for prefix in [PathPrefix(below: "/m/priv"), PathPrefix(below: "/m//priv/"), try #require(PathPrefix("m/priv/*"))] {
            #expect(prefix.mayContain(try path(text)), "\(prefix)")
        }
    }

    @Test(arguments: [
        ("m/priv", "/m/a.gif", false), ("m/priv", "/m/private/a.gif", false), ("m/priv", "/x/m/priv/a.gif", false),
        ("m/x*", "/m//xy/a.gif", true), ("m/x*", "/m/yx/a.gif", false), ("m/x/*", "/m/xy/a.gif", false),
        ("m/*", "/n/a.gif", false),
        ("m/*", "/mm/a.gif", false), ("m/a+b/", "/m/a%2Bb/a.gif", true), ("m/x.*", "/m/x/a.gif", true),
        ("m/100%*", "/m/100/a", true),
    ])
    func otherPathsAreNot(prefix: String, path text: String, mayContain: Bool) throws {
        #expect(try #require(PathPrefix(prefix)).mayContain(try path(text)) == mayContain)
    }

    @Test(arguments: ["a*b", "a?b", "a#b", "../x/", "x/../../y", "%2e%2e/x", "**"]) func aTextThatLeadsOutIsNoPrefix(
        text: String
    ) {
        #expect(PathPrefix(text, below: "/m") == nil)
    }
}
