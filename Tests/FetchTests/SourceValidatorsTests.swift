import Fetch
import Testing

@Suite("Validators are well-formed") struct SourceValidatorsTests {
    @Test(arguments: ["\"v1\"", "W/\"v1\"", "\"\"", "\"é\""])
    func entityTagIsKept(text: String) {
        #expect(SourceValidators(etag: text).etag == text)
    }

    @Test(arguments: [
        "v1", "\"", "\"a\rX-Evil: 1\"", "\"a b\"", "\"a\"b\"", "w/\"v1\"", "\"" + String(repeating: "a", count: 2000) + "\"",
    ])
    func malformedEntityTagIsDropped(text: String) {
        #expect(SourceValidators(etag: text).etag == nil)
    }

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
        #expect(CacheDirectives("public, immutable") == CacheDirectives())
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
}
