import Digests
import Testing

@testable import Store
@testable import Web

@Suite("The list of a source's renditions") struct CacheListingTests {
    @Test(arguments: [
        ("mp4,width=9", "mp4", ["width": "9"]), ("mp4,=", "mp4", ["": ""]),
        ("mp4,==,a=b=c,x", "mp4", ["": "", "a": "b=c", "x": ""]),
        (",,", "mp4", [:]), ("", "mp4", [:]), ("=", "=", [:]),
    ])
    func anyTextOfARenditionIsListed(_ text: String, _ format: String, _ options: [String: String]) throws {
        let digest = [UInt8](repeating: 7, count: 32)
        let record = ObjectRecord(
            id: try #require(ObjectID(bytes: digest)), fileExtension: "mp4", length: 1,
            content: try #require(ContentDigest(bytes: digest)), created: 0, facts: [])
        let listed = CacheListing.Rendition(
            ListedRendition(rendition: text, object: record, age: 0, freshness: .expired, uses: 0))
        #expect(listed.format == format && listed.options == options)
    }
}
