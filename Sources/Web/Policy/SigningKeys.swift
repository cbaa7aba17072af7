internal import Crypto
internal import Foundation

/// The secrets that sign requests. The first key signs and all keys verify, so that keys can be replaced without an
/// interruption.
///
/// The description contains no key, so that string interpolation cannot write one to a log.
package struct SigningKeys: Sendable, CustomStringConvertible {
    private let keys: [SymmetricKey]

    /// - Parameter texts: The keys, of which the UTF-8 bytes count.
    package init(_ texts: [String] = []) {
        keys = texts.map { SymmetricKey(data: Array($0.utf8)) }
    }

    package var isEmpty: Bool { keys.isEmpty }

    /// Whether a key could be found by exhaustive search: a text of fewer than 32 bytes may have less than 128 bits of entropy.
    package var hasShortKey: Bool { keys.contains { $0.bitCount < 256 } }

    package var description: String { "\(keys.count) signing keys" }

    /// The signature of a text: base64url(HMAC-SHA256(key, text)); nil without keys.
    func signature(of text: SignedText) -> String? {
        keys.first.map { Base64URL.encode(HMAC<SHA256>.authenticationCode(for: Array(text.text.utf8), using: $0)) }
    }

    /// Whether one of the keys verifies the signature of a text. The comparison takes constant time.
    func verify(_ signature: String, of text: SignedText) -> Bool {
        guard let code = Base64URL.decode(signature) else { return false }
        let bytes = Array(text.text.utf8)
        return keys.contains { HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: bytes, using: $0) }
    }
}

/// Base64 for URLs, without padding (RFC 4648 section 5).
enum Base64URL {
    static func encode(_ bytes: some Sequence<UInt8>) -> String {
        String(
            Data(bytes).base64EncodedString().compactMap { character in
                switch character {
                case "+": "-"
                case "/": "_"
                case "=": nil
                default: character
                }
            })
    }

    /// Decodes a text. Returns nil for every text that ``encode(_:)`` does not produce, so that bytes have a single encoding.
    static func decode(_ text: String) -> [UInt8]? {
        var standard = String(text.map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 })
        standard += String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        guard let data = Data(base64Encoded: standard) else { return nil }
        let bytes = Array(data)
        return encode(bytes) == text ? bytes : nil
    }
}
