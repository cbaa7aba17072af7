import Store
import SystemIO
import TestSupport
import Testing

@Suite("Names are SHA-256 digests with one text form each") struct NamesTests {
    @Test(arguments: UInt64(0)..<50) func aDigestRoundTripsThroughTextAndBytes(seed: UInt64) throws {
        var numbers = SeededNumbers(seed: seed)
        let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &numbers) }
        let digest = try #require(Digest256(bytes))
        #expect(digest.bytes == bytes)
        #expect(digest.prefix == bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
        let object = ObjectID(digest: digest)
        #expect(object.description == Hex.encode(bytes))
        #expect(ObjectID(hex: object.description) == object)
        #expect(ObjectID(bytes: object.bytes) == object)

        // A single different bit makes a different digest.
        var other = bytes
        other[Int.random(in: 0..<32, using: &numbers)] ^= 1 << UInt8.random(in: 0...7, using: &numbers)
        #expect(Digest256(other) != digest)
    }

    @Test func otherTextsAndCountsAreRefused() {
        let hex = ObjectID.test("a").description
        for text in [hex.uppercased(), String(hex.dropLast()), hex + "0", " " + hex.dropFirst(), hex.dropLast() + "g", ""] {
            #expect(ObjectID(hex: text) == nil)
        }
        for count in [0, 31, 33] { #expect(Digest256([UInt8](repeating: 1, count: count)) == nil) }
    }

    @Test func namesAreStableAcrossVersions() {
        let source = SourceDigest(of: [71, 73, 70])
        #expect(
            ObjectID(source: source, rendition: "mp4", encoderVersion: "1").description
                == "364a25ffe435e07b7c4be4346c076f93d8dc4b361cd81cd0bb89b48766a67017")
        #expect(
            AliasKey(sourceURL: "https://a/", rendition: "mp4").description
                == "ab638eff7f8fb56ed4649485218b134065ca1f16faf68a9fc73de38918872241")
    }

    /// Moving a character from one field to the next must make another name.
    @Test(arguments: ["https://a/", "https://a/ä.gif?v=2", ""]) func fieldsDoNotRunTogether(url: String) {
        let rendition = "mp4,width=480"
        let all = url + rendition
        let keys = all.indices.map { AliasKey(sourceURL: String(all[..<$0]), rendition: String(all[$0...])) }
        #expect(Set(keys).count == keys.count)
        let source = SourceDigest(of: [1])
        let objects = all.indices.map {
            ObjectID(source: source, rendition: String(all[..<$0]), encoderVersion: String(all[$0...]))
        }
        #expect(Set(objects).count == objects.count)
    }

    @Test(arguments: [0, 1, 1000, 262_143, 262_144, 262_145, 600_000])
    func aFileHashesAsItsBytesInMemory(count: Int) throws {
        let bytes = noise(count, seed: UInt64(count))
        var file = try MemoryFile(name: "test")
        try bytes.withUnsafeBytes { try file.append($0) }
        let sealed = try file.seal()
        let expected = SourceDigest(of: bytes)
        #expect(try SourceDigest(of: sealed) == expected)
        let (content, length) = try ContentDigest.measure(sealed)
        #expect(content.digest == expected.digest)
        #expect(length == count)
    }
}
