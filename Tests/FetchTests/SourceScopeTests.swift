import Testing

@testable import Fetch

@Suite("A scope contains its sources in every spelling that an origin may resolve") struct SourceScopeTests {
    @Test(arguments: [
        "http://a.test/m/priv/a.gif", "http://a.test/m//priv/a.gif", "http://a.test//m/priv//a.gif",
        "http://a.test/m%2Fpriv/a.gif", "http://a.test/m/priv%2Fa.gif", "http://a.test/m%5Cpriv/a.gif",
        "http://a.test/m/.%2Fpriv/a.gif", "http://a.test/m/x/..%2Fpriv/a.gif", "http://a.test/x/..%2Fm/priv/a.gif",
        "http://A.test:80/m/x/../pri%76/a.gif?v=1",
    ])
    func spellingsOfAPathAreContained(text: String) throws {
        for root in ["http://a.test/m/priv", "http://a.test/m/priv/", "http://a.test/m//priv/"] {
            #expect(SourceScope(below: try SourceURL(root)).contains(try SourceURL(text)), "\(root)")
        }
    }

    @Test(arguments: [
        "http://a.test/m/a.gif", "http://a.test/m/private/a.gif", "http://a.test/x/m/priv/a.gif", "https://a.test/m/priv/a.gif",
        "http://b.test/m/priv/a.gif", "http://a.test:8080/m/priv/a.gif", "http://b.test/..%2Fa.gif",
        "http://a.test/m/a.gif?x=/../priv/",
    ])
    func otherSourcesAreNot(text: String) throws {
        #expect(!SourceScope(below: try SourceURL("http://a.test/m/priv/")).contains(try SourceURL(text)))
    }

    @Test(arguments: [
        ("x/", "/m/x/a.gif", true), ("x/", "/m//x/a.gif", true), ("x", "/m/x/a.gif", true), ("x", "/m/xy/a.gif", false),
        ("x*", "/m//xy/a.gif", true), ("x*", "/m/yx/a.gif", false), ("x/*", "/m/x/a.gif", true), ("x/*", "/m/xy/a.gif", false),
        ("*", "/m/a.gif", true), ("*", "/n/a.gif", false), ("*", "/mm/a.gif", false), ("a+b/", "/m/a%2Bb/a.gif", true),
    ])
    func aPathHasTheFormOfAPattern(path: String, source: String, isContained: Bool) throws {
        let scope = SourceScope(below: try SourceURL("http://a.test/m"), path: path)
        #expect(scope.contains(try SourceURL("http://a.test" + source)) == isContained)
    }

    @Test func theURLsOfABucketAreThoseOfItsObjects() throws {
        let root = try SourceURL("https://pics.s3.example/")
        let object = try SourceURL(s3: "s3://pics/up/a.gif", bucket: "pics", at: root)
        let scope = SourceScope(below: try SourceURL(s3: "s3://pics/up/", bucket: "pics", at: root))
        #expect(scope.contains(object))
        #expect(scope.contains(try SourceURL("https://pics.s3.example/up/a.gif")))
        #expect(!scope.contains(try SourceURL("https://pics.s3.example/a.gif")))
    }
}
