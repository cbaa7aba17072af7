import Testing

@testable import Fetch

@Suite("Validators are well-formed") struct SourceValidatorsTests {
    @Test(arguments: ["\"v1\"", "W/\"v1\"", "\"\"", "\"é\""])
    func entityTagIsKept(text: String) {
        #expect(SourceValidators(etag: text).etag == text)
    }

    @Test(arguments: [
        "v1", "\"", "\"a\rX-Evil: 1\"", "\"a b\"", "\"a\"b\"", "w/\"v1\"", "\"" + String(repeating: "a", count: 2000) + "\"",
        String(decoding: [0x22, 0x63, 0x61, 0x66, 0xE9, 0x22] as [UInt8], as: UTF8.self),
    ])
    func malformedEntityTagIsDropped(text: String) {
        #expect(SourceValidators(etag: text).etag == nil)
    }

    /// RFC 9111 section 4.3.4. The validators of a 304, those of the stored response, and whether the 304 is about it.
    @Test(
        arguments: [
            (SourceValidators(), SourceValidators(etag: "\"a\""), true),
            (SourceValidators(etag: "\"a\""), SourceValidators(etag: "\"a\""), true),
            (SourceValidators(etag: "\"b\""), SourceValidators(etag: "\"a\""), false),
            (SourceValidators(etag: "W/\"b\""), SourceValidators(etag: "\"a\""), false),
            (SourceValidators(etag: "\"a\""), SourceValidators(etag: "W/\"a\""), true),
            (SourceValidators(etag: "\"a\"", lastModified: later), SourceValidators(etag: "\"a\"", lastModified: date), true),
            (SourceValidators(etag: "\"a\""), SourceValidators(lastModified: date), false),
            (SourceValidators(etag: "\"a\"", lastModified: date), SourceValidators(lastModified: date), true),
            (SourceValidators(lastModified: date), SourceValidators(lastModified: date), true),
            (SourceValidators(lastModified: later), SourceValidators(lastModified: date), false),
            (SourceValidators(lastModified: later), SourceValidators(etag: "\"a\""), true),
        ])
    func aConfirmationNamesTheResponseThatItConfirms(
        _ received: SourceValidators, _ known: SourceValidators, _ expected: Bool
    ) {
        #expect(received.confirm(known) == expected)
    }

    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    private static let later = "Mon, 07 Nov 1994 08:49:37 GMT"

    @Test func lastModifiedMustBeADate() {
        #expect(SourceValidators(lastModified: "Sun, 06 Nov 1994 08:49:37 GMT").lastModified != nil)
        #expect(SourceValidators(lastModified: "x").isEmpty)
        #expect(SourceValidators(lastModified: "Sun, 06 Nov 1994 08:49:37 GMT\r\nX: y").isEmpty)
    }
}

@Suite("Cache directives give the lifetime of a response") struct CacheDirectivesTests {
    @Test(
        arguments: [
            ("", nil), ("max-age=60", 60), ("Max-Age=\"60\"", 60), ("max-age=60, s-maxage=5", 5), ("max-age=60,max-age=7", 7),
            ("max-age=x", 0), ("max-age", 0), ("max-age=99999999999999999999", 1 << 31), ("public", nil),
        ] as [(String, Int?)])
    func lifetimeIsParsed(text: String, age: Int?) {
        #expect(CacheDirectives(text).maxAge == age)
    }

    @Test func flagsAreParsed() {
        let directives = CacheDirectives("No-Store, no-cache=\"Set-Cookie\" , private")
        #expect(directives.noStore && directives.noCache && directives.isPrivate)
        let others = CacheDirectives("public, immutable")
        #expect(!others.noStore && !others.noCache && !others.isPrivate && !others.forbidsStale && !others.isEmpty)
        #expect(CacheDirectives().isEmpty)
    }

    @Test(arguments: ["must-revalidate", "max-age=9, Proxy-Revalidate", "no-cache", "s-maxage=5"])
    func someForbidToUseTheResponseOnceItIsStale(text: String) {
        #expect(CacheDirectives(text).forbidsStale)
    }

    @Test(
        arguments: [
            ("max-age=60", nil, 0, 60), ("max-age=60", nil, 20, 40), ("max-age=60", nil, 100, 0), ("max-age=60", 500, 0, 60),
            ("s-maxage=10, max-age=60", 500, 0, 10), ("", 500, 0, 500), ("", 500, 100, 400), ("", 0, 0, 0), ("", nil, 30, nil),
            ("public", 7, 9, 0), ("max-age=0", 500, 0, 0),
        ] as [(String, Int?, Int, Int?)])
    func freshnessIsTheLifetimeLessTheAge(text: String, expiry: Int?, age: Int, freshFor: Int?) {
        #expect(CacheDirectives(text, expiry: expiry, age: age).freshFor == freshFor)
    }

    /// RFC 9111 section 5.2.2.10.
    @Test(
        arguments: [
            ("s-maxage=500, max-age=60", nil, 0, 60), ("max-age=0, s-maxage=500", 90, 0, 0), ("s-maxage=500", 90, 20, 70),
            ("s-maxage=500", nil, 0, nil), ("max-age=60", nil, 20, 40), ("", nil, 0, nil),
        ] as [(String, Int?, Int, Int?)])
    func theLifetimeOfSharedCachesIsNotThatOfClients(text: String, expiry: Int?, age: Int, clientFreshFor: Int?) {
        #expect(CacheDirectives(text, expiry: expiry, age: age).clientFreshFor == clientFreshFor)
    }
}
