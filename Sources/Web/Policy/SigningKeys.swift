internal import Crypto

/// The secrets that requests are signed with. Several are valid at once, so that they can be changed without a gap: the
/// first one signs, all verify.
///
/// Its description tells no key, so that none comes into a log by string interpolation.
package struct SigningKeys: Sendable, CustomStringConvertible {
    private let keys: [SymmetricKey]

    /// - Parameter texts: The keys; their UTF-8 bytes count.
    package init(_ texts: [String] = []) {
        keys = texts.map { SymmetricKey(data: Array($0.utf8)) }
    }

    package var isEmpty: Bool { keys.isEmpty }

    /// Whether one could be found by trying: a key of fewer than 32 bytes may have less than 128 bits where it is text.
    package var hasShortKey: Bool { keys.contains { $0.bitCount < 256 } }

    package var description: String { "\(keys.count) signing keys" }

    /// `sig` of a text: base64url(HMAC-SHA256(key, text)); nil without keys.
    func signature(of text: SignedText) -> String? {
        keys.first.map { Base64URL.encode(HMAC<SHA256>.authenticationCode(for: Array(text.text.utf8), using: $0)) }
    }

    /// Whether `signature` is that of `text` by any of the keys. Takes the same time wherever they differ.
    func verify(_ signature: String, of text: SignedText) -> Bool {
        guard let code = Base64URL.decode(signature) else { return false }
        let bytes = Array(text.text.utf8)
        return keys.contains { HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: bytes, using: $0) }
    }
}
