import Fetch
import Renditions
import SystemIO
import TestSupport
import Testing

@testable import Web

@Suite("The addresses of a source are signed as the request for it was") struct RenditionAddressesTests {
    private static let keys = SigningKeys(["an-example-key-of-at-least-32-bytes"])
    private static let expires: Int64 = 2_000_000_000
    private let mounts: [String: Mount]
    private let source: SourceURL

    init() throws {
        mounts = ["media": Mount(origin: try SourceURL("https://example.com/up"))]
        source = try SourceURL("https://example.com/up/a.gif")
    }

    /// A target whose signature fits, if it has one.
    private func parsed(_ target: String) throws -> ParsedTarget {
        var parsed = try RouteParser(mounts: mounts).parse(target)
        let clock = TimeSource(unixSeconds: { 1 }, monotonicNanoseconds: { 0 })
        let check = SignatureCheck(keys: Self.keys, isRequired: false, clock: clock)
        parsed.key = try check.verify(try #require(parsed.credentials), of: parsed.source, rule: nil)
        return parsed
    }

    private func targets(_ addresses: RenditionAddresses) throws -> [ParsedTarget] {
        let formats: [Rendition.Format] = [.mp4, .jpg, .html]
        let texts = formats.flatMap { format in
            [false, true].map { addresses.target(Rendition(format: format), isNamed: $0) }
        }
        return try ([addresses.automatic] + texts).map(parsed)
    }

    @Test(arguments: [true, false]) func theyExpireWithTheRequest(_ isMounted: Bool) throws {
        let page = RenditionAddresses(
            of: source, mounts: isMounted ? mounts : [:], keys: Self.keys, expires: Self.expires)
        let asked = try parsed(page.target(Rendition(format: .html)))
        for addresses in [page, RenditionAddresses(asked, of: source, keys: Self.keys)] {
            #expect(addresses.isMounted == isMounted)
            for target in try targets(addresses) {
                #expect(target.key != nil && target.credentials?.expires == Self.expires)
                #expect(target.source?.canonical == source.canonical)
            }
        }
    }

    @Test(arguments: ["/media/a.html", "/html/https://example.com/up/a.gif"])
    func aRequestWithoutASignatureObtainsNone(_ target: String) throws {
        let addresses = RenditionAddresses(try parsed(target), of: source, keys: Self.keys)
        for target in try targets(addresses) { #expect(target.key == nil && target.credentials?.signature == nil) }
    }
}
