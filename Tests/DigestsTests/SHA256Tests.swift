import Digests
import SystemIO
import Testing

struct SHA256Tests {
    /// The examples of NIST for SHA-256.
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ])
    func knownTextsHaveKnownDigests(text: String, digest: String) {
        #expect(Hex.encode(SHA256.hash(text.utf8)) == digest)
    }

    @Test func bytesMayArriveInPiecesOfAnySize() {
        let bytes = Array(repeating: UInt8(ascii: "a"), count: 1_000_000)
        for size in [1, 63, 64, 65, 4096, 1_000_000] {
            var hash = SHA256()
            for start in stride(from: 0, to: bytes.count, by: size) {
                hash.update(bytes[start..<min(start + size, bytes.count)])
            }
            #expect(Hex.encode(hash.finalize()) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
        }
    }

    @Test func aCopyContinuesOnItsOwn() {
        var first = SHA256()
        first.update("a".utf8)
        var second = first
        second.update("b".utf8)
        #expect(first.finalize() == SHA256.hash("a".utf8))
        #expect(second.finalize() == SHA256.hash("ab".utf8))
        first.update("c".utf8)
        #expect(first.finalize() == SHA256.hash("ac".utf8))
    }

    @Test func storageThatIsNotContiguousIsHashed() {
        #expect(
            SHA256.hash(
                sequence(state: UInt8(0)) { byte in
                    byte += 1
                    return byte > 3 ? nil : byte
                }) == SHA256.hash([1, 2, 3]))
    }

    @Test func manyThreadsHashAtTheSameTime() async {
        let expected = SHA256.hash("text".utf8)
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<64 {
                group.addTask { (0..<200).allSatisfy { _ in SHA256.hash("text".utf8) == expected } }
            }
            for await isEqual in group { #expect(isEqual) }
        }
    }
}
