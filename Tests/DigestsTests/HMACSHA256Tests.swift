import Digests
import SystemIO
import Testing

struct HMACSHA256Tests {
    /// Test cases 1, 2, 3 and 6 of RFC 4231.
    @Test(
        arguments: [
            (
                Array(repeating: 0x0b, count: 20), Array("Hi There".utf8),
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
            ),
            (
                Array("Jefe".utf8), Array("what do ya want for nothing?".utf8),
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
            ),
            (
                Array(repeating: 0xaa, count: 20), Array(repeating: 0xdd, count: 50),
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"
            ),
            (
                Array(repeating: 0xaa, count: 131), Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
            ),
        ] as [([UInt8], [UInt8], String)])
    func knownMessagesHaveKnownCodes(key: [UInt8], message: [UInt8], code: String) throws {
        let authentication = HMACSHA256(key: key)
        #expect(Hex.encode(authentication.code(for: message)) == code)
        #expect(authentication.isValid(try #require(Hex.decode(code.utf8)), for: message))
    }

    @Test func anEmptyKeyIsAKeyOfItsOwn() {
        let authentication = HMACSHA256(key: [])
        _ = HMACSHA256(key: "other".utf8).code(for: [1])
        #expect(
            Hex.encode(authentication.code(for: []))
                == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
    }

    @Test func anotherCodeMessageOrKeyIsInvalid() {
        let authentication = HMACSHA256(key: "key".utf8)
        var code = authentication.code(for: "text".utf8)
        #expect(authentication.isValid(code, for: "text".utf8))
        #expect(!authentication.isValid(code, for: "texts".utf8))
        #expect(!HMACSHA256(key: "keys".utf8).isValid(code, for: "text".utf8))
        #expect(!authentication.isValid(code.dropLast(), for: "text".utf8))
        #expect(!authentication.isValid([], for: "text".utf8))
        code[31] ^= 1
        #expect(!authentication.isValid(code, for: "text".utf8))
    }

    @Test func comparisonsInConstantTimeCompareAllBytes() {
        #expect(ConstantTime.areEqual([], []))
        #expect(ConstantTime.areEqual([1, 2], [1, 2]))
        #expect(!ConstantTime.areEqual([1, 2], [1, 3]))
        #expect(!ConstantTime.areEqual([1], [1, 0]))
    }
}
