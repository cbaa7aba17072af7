import Foundation
import TestSupport
import Testing

@testable import Prewarm

@Suite("Lists in gzip are decompressed") struct GzipReaderTests {
    /// What the program `gzip` makes of the bytes.
    private func gzip(_ bytes: [UInt8]) throws -> [UInt8] {
        let outcome = try ChildProcess(URL(fileURLWithPath: "/usr/bin/env"), ["gzip", "-c"], input: bytes).finish()
        try #require(outcome.code == 0)
        return outcome.bytes
    }

    private func lines(_ count: Int) -> [UInt8] {
        Array((0..<count).map { "https://a.test/\($0).gif\n" }.joined().utf8)
    }

    @Test(arguments: [0, 1, 100_000]) func theBytesAreThoseThatWereCompressed(_ count: Int) throws {
        let text = lines(count)
        let compressed = try gzip(text)
        #expect(GzipReader.isGzip(compressed) && !GzipReader.isGzip(text))
        #expect(try GzipReader.decompress(compressed, limit: text.count) == text)
    }

    @Test func theMembersOfAFileAreJoinedAndPaddingIsIgnored() throws {
        let file = try gzip(lines(2)) + gzip([]) + gzip(lines(3)) + [0, 0, 0]
        #expect(try GzipReader.decompress(file, limit: 1 << 20) == lines(2) + lines(3))
        // Parallel compressors write a member per 64 KiB.
        let member = try gzip(lines(1))
        let members = Array(repeatElement(member, count: 4200).joined())
        #expect(try GzipReader.decompress(members, limit: 256 << 20).count == 4200 * lines(1).count)
    }

    @Test func moreBytesThanTheLimitAreRefused() throws {
        let compressed = try gzip([UInt8](repeating: 0x20, count: 3 << 20))
        #expect(throws: PrewarmList.Malformed("The list has more than 2 MiB when it is decompressed.")) {
            try GzipReader.decompress(compressed, limit: 2 << 20)
        }
    }

    @Test func dataThatEndsEarlyIsIncomplete() throws {
        let compressed = try gzip(lines(100))
        for count in [2, 5, 10, compressed.count / 2, compressed.count - 1] {
            #expect(throws: PrewarmList.Malformed("The list is incomplete: its gzip data ends early.")) {
                try GzipReader.decompress(Array(compressed.prefix(count)), limit: 1 << 20)
            }
        }
    }

    @Test func damagedDataIsNamed() throws {
        var compressed = try gzip(lines(100))
        // The checksum of the bytes.
        compressed[compressed.count - 8] ^= 1
        for bytes in [compressed, [0x1F, 0x8B, 9, 0]] {
            #expect(throws: PrewarmList.Malformed("The list is damaged: its gzip data cannot be decompressed.")) {
                try GzipReader.decompress(bytes, limit: 1 << 20)
            }
        }
    }
}
