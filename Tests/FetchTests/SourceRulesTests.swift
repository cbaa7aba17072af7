import TestSupport
import Testing

@testable import Fetch

@Suite("The rules for sources decide by the URL alone") struct SourceRulesTests {
    private func rules(_ change: (inout FetchConfiguration) throws -> Void = { _ in }) rethrows -> SourceRules {
        var configuration = FetchConfiguration()
        try change(&configuration)
        return configuration.rules
    }

    private func refusal(
        _ url: String, _ change: (inout FetchConfiguration) throws -> Void = { _ in }
    ) throws -> SourceRules.Refusal? {
        try rules(change).refusal(of: try SourceURL(url))
    }

    private func mount(
        _ root: String, allow: [String] = [], fields: [String] = [], requiresSignature: Bool? = nil
    ) throws -> MountRule {
        var rule = MountRule(try SourceURL(root), allow: allow)
        rule.fields = fields
        rule.requiresSignature = requiresSignature
        return rule
    }

    // MARK: sources.allow, ports and addresses

    @Test func defaultsAllowEveryPublicSource() throws {
        #expect(try refusal("https://example.com/a.gif") == nil)
        #expect(try refusal("http://93.184.215.14:8080/a.gif") == nil)
    }

    @Test func narrowedPatternsRefuse() throws {
        let narrow = { (configuration: inout FetchConfiguration) in
            configuration.allow = ["cdn.example.com/gifs", "*.b.test/up/", "[::1]"].compactMap { SourcePattern($0) }
        }
        for url in ["https://cdn.example.com/gifs/a.gif", "http://x.b.test/up/a.gif"] {
            #expect(try refusal(url, narrow) == nil, "\(url)")
        }
        for url in [
            "https://cdn.example.com/a.gif", "https://example.com/gifs/a.gif", "http://b.test/up/a.gif",
            "http://x.b.test/a.gif",
        ] + SourcePathTests.parents.map({ "https://cdn.example.com/gifs/\($0)/a.gif" }) {
            #expect(try refusal(url, narrow) == .pattern, "\(url)")
        }
    }

    @Test func withoutPatternsNothingIsAllowed() throws {
        #expect(try refusal("http://example.com/") { $0.allow = [] } == .pattern)
    }

    @Test func narrowedPortsRefuse() throws {
        #expect(try refusal("http://example.com/a.gif") { $0.ports = [443] } == .address(.port(80, allowed: [443])))
        #expect(try refusal("https://example.com/a.gif") { $0.ports = [443] } == nil)
    }

    @Test func aWithdrawnExceptionRefusesAnAddress() throws {
        let allow = { (configuration: inout FetchConfiguration) in
            configuration.allowPrivate = ["10.0.0.0/8"].compactMap { AddressException($0) }
        }
        #expect(try refusal("http://10.0.0.1/a.gif", allow) == nil)
        #expect(try refusal("http://10.0.0.1:22/a.gif", allow) == .address(.port(22, allowed: FetchConfiguration().ports)))
        #expect(try refusal("http://10.0.0.1/a.gif") == .address(.address(purpose: "private use")))
    }

    /// The addresses behind a name are unknown without the DNS, which is not asked.
    @Test func namesAreNotLookedUp() throws {
        #expect(try refusal("http://localhost/a.gif") == nil)
    }

    // MARK: Mounts

    @Test func aMountPermitsItsSourcesAndNoOthers() throws {
        let rules = try rules {
            $0.allow = []
            $0.mounts = [try mount("https://a.test/up", allow: ["cats/", "dogs/x*"])]
        }
        for url in ["https://a.test/up/cats/a.gif", "https://A.test:443/up/dogs/xy.gif"] {
            #expect(rules.rights(to: try SourceURL(url)) == SourceRules.Rights(), "\(url)")
        }
        for url in [
            "https://a.test/up/birds/a.gif", "https://a.test/cats/a.gif", "http://a.test/up/cats/a.gif",
            "https://a.test:444/up/cats/a.gif", "https://b.test/up/cats/a.gif",
        ] + SourcePathTests.parents.map({ "https://a.test/up/cats/\($0)/a.gif" }) {
            #expect(rules.refusal(of: try SourceURL(url)) == .pattern, "\(url)")
        }
    }

    @Test func aMountDoesNotPermitAddressesAndPorts() throws {
        let rules = try rules { $0.mounts = [try mount("http://10.0.0.1:22/up/")] }
        #expect(
            rules.refusal(of: try SourceURL("http://10.0.0.1:22/up/a.gif"))
                == .address(.port(22, allowed: FetchConfiguration().ports)))
    }

    @Test func theSourcesOfASignedMountNeedASignatureInEverySpelling() throws {
        let rules = try rules { $0.mounts = [try mount("http://a.test/m/priv/", requiresSignature: true)] }
        let spellings = [
            "/m/priv/a.gif", "/m//priv/a.gif", "/m%2Fpriv/a.gif", "/m/x/..%2Fpriv/a.gif", "/m/pri%2576/a.gif",
            "/m;x/priv/a.gif",
            "/M/Priv/a.gif",
        ]
        for path in spellings + SourcePathTests.parents.map({ "/x/\($0)/a.gif" }) {
            #expect(rules.rights(to: try SourceURL("http://a.test" + path)).needsSignature, "\(path)")
        }
        for url in [
            "http://a.test/m/a.gif", "https://a.test/m/priv/a.gif", "http://b.test/m/priv/a.gif", "http://a.test:8080/m/priv/a",
        ] {
            #expect(!rules.rights(to: try SourceURL(url)).needsSignature, "\(url)")
        }
    }

    @Test func onlyTheAllowedPathsOfASignedMountAreProtected() throws {
        let rules = try rules { $0.mounts = [try mount("http://a.test/m", allow: ["x", "y*"], requiresSignature: true)] }
        for (path, isProtected) in [
            ("/m/x/a", true), ("/m//x/a", true), ("/m/xy/a", false), ("/m/yz/a", true), ("/m/a", false),
        ] {
            #expect(rules.rights(to: try SourceURL("http://a.test" + path)).needsSignature == isProtected, "\(path)")
        }
    }

    // MARK: Fields

    private func privateRules() throws -> SourceRules {
        try rules {
            $0.mounts = [
                try mount("https://a.test/private/", allow: ["x"], fields: ["X-Key: 1"]),
                try mount("https://b.test/", fields: ["X-Key: 2"]),
            ]
        }
    }

    @Test(arguments: [
        ("https://a.test/private/x.gif", "https://a.test/private/x.gif", ["X-Key: 1"]),
        ("https://a.test/private/y.gif", "https://a.test/private/x.gif", ["X-Key: 1"]),
        // The origin redirects elsewhere, and another source to the origin.
        ("https://c.test/x.gif", "https://a.test/private/x.gif", []),
        ("https://a.test/private/x.gif", "https://c.test/x.gif", []),
        ("https://a.test/private/x.gif", "https://b.test/x.gif", []),
        ("https://a.test/x.gif", "https://a.test/private/x.gif", []),
        ("http://a.test/private/x.gif", "http://a.test/private/x.gif", []),
        ("https://a.test:444/private/x.gif", "https://a.test:444/private/x.gif", []),
        ("https://A.test:443/private/x.gif", "https://a.test/private/x.gif", ["X-Key: 1"]),
        ("https://a.test/private/../x.gif", "https://a.test/private/x.gif", []),
    ])
    func fieldsAreSentForSourcesOfTheirMountOnly(_ url: String, _ source: String, _ fields: [String]) throws {
        #expect(try privateRules().fields(of: SourceURL(url), source: SourceURL(source)) == fields)
    }

    @Test(arguments: SourcePathTests.parents) func fieldsAreNotSentOutOfTheirFolder(text: String) throws {
        let url = try SourceURL("https://a.test/private/\(text)/x.gif")
        #expect(try privateRules().fields(of: url, source: url) == [])
        #expect(try privateRules().rights(to: url).needsMount)
    }

    @Test func sourcesWithFieldsNeedAMount() throws {
        let rules = try privateRules()
        for url in ["https://a.test/private/x/a.gif", "https://a.test//private/z.gif", "https://b.test/a.gif"] {
            #expect(rules.rights(to: try SourceURL(url)).needsMount, "\(url)")
        }
        for url in ["https://a.test/a.gif", "https://c.test/a.gif"] {
            #expect(!rules.rights(to: try SourceURL(url)).needsMount, "\(url)")
        }
    }

    @Test func noOtherSourceRedirectsToAProtectedOne() throws {
        let rules = try rules {
            $0.mounts = [
                try mount("https://a.test/signed/", requiresSignature: true),
                try mount("https://a.test/private/", fields: ["X-Key: 1"]),
            ]
        }
        func refusal(_ target: String, from source: String) throws -> SourceRules.Refusal? {
            rules.refusal(
                of: try SourceURL("https://a.test" + target), redirectedFrom: try SourceURL("https://a.test" + source))
        }
        for folder in ["signed", "private"] {
            for target in ["/\(folder)/a.gif", "/x/..%252f\(folder)/a.gif", "/\(folder)%2Fa.gif"] {
                #expect(try refusal(target, from: "/open/a.gif") == .redirect(host: "a.test"), "\(target)")
            }
            #expect(try refusal("/\(folder)/b.gif", from: "/\(folder)/a.gif") == nil)
            #expect(try refusal("/open/b.gif", from: "/\(folder)/a.gif") == nil)
        }
        // A redirect of a source to itself.
        let narrow = self.rules { $0.allow = [] }
        let source = try SourceURL("https://a.test/a.gif")
        #expect(narrow.refusal(of: source, redirectedFrom: source) == .pattern)
    }

    @Test(arguments: [
        ("https://a.test/m/", "https://a.test/m/x/", true), ("https://a.test/m/", "https://a.test/M//x/", true),
        ("https://a.test/m/", "https://a.test/m2/", false), ("https://a.test/m/", "https://b.test/m/", false),
        ("https://a.test/", "https://a.test/x/", true),
    ])
    func mountsOverlapIfTheirOriginsMay(_ one: String, _ other: String, _ overlap: Bool) throws {
        #expect(try mount(one).overlaps(mount(other)) == overlap && mount(other).overlaps(mount(one)) == overlap)
    }

    // MARK: Objects and files

    @Test func objectsAreAvailableThroughTheirMountOnly() throws {
        var rule = MountRule(
            try SourceURL(bucketFolder: "s3://pics/up", of: "pics", at: "https://pics.s3.example/"), allow: ["a(b)/"])
        rule.requiresSignature = true
        let rules = rules { ($0.mounts, $0.allow) = ([rule], []) }
        let object = try rule.source("s3://pics/up/a%28b%29/x.gif")
        #expect(rules.rights(to: object) == SourceRules.Rights(needsSignature: true))
        #expect(rules.refusal(of: try rule.source("s3://pics/up/x.gif")) == .pattern)
        // The bucket is also at the URL of its service, which the mount protects but does not permit.
        #expect(
            rules.rights(to: try SourceURL("https://pics.s3.example/up//a(b)/x.gif"))
                == SourceRules.Rights(refusal: .pattern, needsSignature: true))
        // A reload has moved the mount to another service, or removed it.
        let moved = MountRule(try SourceURL(bucketFolder: "s3://pics/up", of: "pics", at: "https://pics.s3.other/"))
        #expect(self.rules { $0.mounts = [moved] }.refusal(of: object) == .pattern)
        #expect(FetchConfiguration().rules.refusal(of: object) == .pattern)
    }

    @Test(
        arguments: [
            ("y.gif", [], true), (".y.gif", [], false), (".git/y.gif", [], false), ("a/.b/y.gif", [], false),
            ("a.b/y..gif", [], true),
            (".git/y.gif", [".git/"], true), (".git/.y.gif", [".git/"], false), (".y.gif", [".*"], true),
            (".y.gif", ["*"], false),
            ("a/.y.gif", ["a/.*"], true), ("a/.b/y.gif", ["a"], false), (".y.gif", [".y*"], true),
            ("a(b)!$&'+,;=:@c/y.gif", ["a(b)!$&'+,;=:@c/"], true), ("a%28b%29/y.gif", ["a(b)/"], true),
            ("b/y.gif", ["a/"], false),
            ("é/y.gif", ["%C3%A9/"], true), ("..;x/y.gif", [], false),
        ] as [(String, [String], Bool)])
    func filesAreAvailableUnlessTheyAreHidden(path: String, allow: [String], isServed: Bool) throws {
        let rule = MountRule(try SourceURL(directory: "/srv/.gifs/"), allow: allow)
        let file = try rule.source("file:///srv/.gifs/" + path)
        #expect(rules { $0.mounts = [rule] }.refusal(of: file) == (isServed ? nil : .pattern))
    }

    @Test func aFileOfAnotherMountIsProtectedByItsPath() throws {
        var inner = MountRule(try SourceURL(directory: "/srv/gifs/"))
        inner.requiresSignature = true
        let outer = MountRule(try SourceURL(directory: "/srv/"))
        let rules = rules { $0.mounts = [inner, outer] }
        #expect(rules.rights(to: try outer.source("file:///srv/gifs/a.gif")).needsSignature)
        #expect(!rules.rights(to: try outer.source("file:///srv/a.gif")).needsSignature)
        #expect(self.rules { $0.mounts = [inner] }.refusal(of: try outer.source("file:///srv/gifs/a.gif")) == .pattern)
    }
}

@Suite("Fields of requests have a name and a value") struct RequestFieldTests {
    @Test(arguments: [
        ("Authorization: Bearer a.b-c=", true), ("X-Key:1", true), ("x_key: a b", true), ("X-Key", false), ("X-Key:", false),
        (": a", false),
        ("X Key: a", false), ("X-Key: a\r\nB: c", false), ("X-Key: é", false), ("Host: a", false), ("range: bytes=0-1", false),
        ("User-Agent: gifs.test/1 (ops@gifs.test)", true),
        ("If-None-Match: x", false), ("Transfer-Encoding: chunked", false), ("", false),
    ])
    func isValid(_ text: String, _ isField: Bool) {
        #expect(RequestField.isValid(text) == isField)
    }
}
