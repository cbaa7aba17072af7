import Digests
import Media
import Store
import TestSupport
import Testing

@testable import Renditions

@Suite("A block list is read as a whole or refused")
struct BlockListTests {
    private static let hash = String(repeating: "0123456789abcdef", count: 4)
    private static let other = String(repeating: "fedcba9876543210", count: 4)

    private static func list(_ text: String) throws -> BlockList { try list(Array(text.utf8)) }

    private static func list(_ bytes: [UInt8]) throws -> BlockList { try bytes.withUnsafeBytes { try BlockList($0) } }

    private static func refusal(_ text: String) -> BlockList.Invalid? {
        do {
            _ = try list(text)
            return nil
        } catch {
            return error as? BlockList.Invalid
        }
    }

    /// The hash with some of its bits changed, spread over all of them.
    private static func changed(_ hash: PDQHash, bits: Int) -> PDQHash {
        var changed = hash.bits
        for bit in (0..<bits).map({ $0 * 256 / bits }) { changed[bit / 64] ^= 1 << UInt64(bit % 64) }
        return PDQHash(changed)
    }

    @Test func linesAreEntriesWithLabels() throws {
        let text = "# a comment\n\npdq:\(Self.hash) case 17, with spaces\r\n  sha256:\(Self.other.uppercased())\tcase 18 \n"
        let list = try Self.list(text)
        #expect(list.count == 2 && list.hasHashes)
        #expect(list.label(of: [try #require(PDQHash(text: Self.hash.utf8))]) == "case 17, with spaces")
        #expect(list.label(of: try #require(SourceDigest(hex: Self.other))) == "case 18")
        #expect(list.label(of: try #require(SourceDigest(hex: Self.hash))) == nil)
    }

    @Test func aListMayBeEmpty() throws {
        for text in ["", "\n", "# nothing", "\r\n \n"] {
            let list = try Self.list(text)
            #expect(list.count == 0 && !list.hasHashes && list.label(of: [PDQHash(.zero)]) == nil)
        }
    }

    @Test(arguments: [
        "md5:\(hash) x", "pdq:\(hash.dropLast()) x", "pdq:\(hash)0 x", "sha256:\(hash.dropLast())g x", "pdq: x", hash,
        "PDQ:\(hash) x",
    ])
    func anotherLineIsNamedByItsNumber(_ line: String) {
        let refusal = Self.refusal("# first\npdq:\(Self.hash) x\n\(line) y\nsha256:\(Self.hash) z\n")
        #expect(refusal?.description == "line 3 does not begin with pdq: or sha256: and 64 hexadecimal digits")
    }

    @Test func aLabelIsAText() {
        #expect(Self.refusal("pdq:\(Self.hash)\n") == .line(1, reason: "has no label after the hash"))
        let reason = "has a label that is not a text of at most 200 bytes"
        for label in [String(repeating: "x", count: 201), "a\u{1}b", "a\u{7f}"] {
            #expect(Self.refusal("\n\npdq:\(Self.hash) \(label)") == .line(3, reason: reason))
        }
        #expect(Self.refusal("pdq:\(Self.hash) \(String(repeating: "é", count: 100))") == nil)
        #expect(throws: BlockList.Invalid.line(1, reason: reason)) {
            try Self.list(Array("pdq:\(Self.hash) ".utf8) + [0xff, 0xfe])
        }
    }

    @Test func theNumberOfEntriesIsBounded() throws {
        let line = Array("pdq:\(Self.hash) x\n".utf8)
        let most = Array(repeatElement(line, count: BlockList.maxEntries).joined())
        #expect(try Self.list(most).count == BlockList.maxEntries)
        #expect(throws: BlockList.Invalid.tooLong(maxEntries: BlockList.maxEntries)) { try Self.list(most + line) }
    }

    @Test func theNearestEntryCounts() throws {
        let hash = try #require(PDQHash(text: Self.hash.utf8))
        let near = Self.changed(hash, bits: 12)
        let list = try Self.list("pdq:\(hash.text) exact\npdq:\(near.text) near\n")
        #expect(list.label(of: [hash]) == "exact" && list.label(of: [near]) == "near")
        #expect(list.label(of: [Self.changed(hash, bits: 4)]) == "exact")
        #expect(list.label(of: [PDQHash(.zero), near]) == "near")
    }

    @Test func variantsMatchUpToTheNearDistance() throws {
        let hash = try #require(PDQHash(text: Self.hash.utf8))
        let list = try Self.list("pdq:\(hash.text) x")
        #expect(list.label(of: [Self.changed(hash, bits: 31)]) == "x")
        #expect(list.label(of: [Self.changed(hash, bits: 32)]) == nil)
        #expect(list.label(of: []) == nil)
    }

    @Test func noBytesAreMisread() {
        var numbers = SeededNumbers(seed: 65)
        let parts =
            BlockListSeeds.all
            + ["pdq:", Self.hash, Self.other, " ", "\n", "\r", "#", "x", "\u{0}", "é"].map { Array($0.utf8) }
        for _ in 0..<20_000 {
            var bytes = (0..<Int.random(in: 0...8, using: &numbers)).flatMap { _ in parts.randomElement(using: &numbers) ?? [] }
            if !bytes.isEmpty, Bool.random(using: &numbers) {
                bytes[Int.random(in: bytes.indices, using: &numbers)] = UInt8.random(in: 0...255, using: &numbers)
            }
            let violation = bytes.withUnsafeBytes(BlockListInvariants.violation)
            #expect(violation == nil, "\(bytes)")
        }
    }
}
