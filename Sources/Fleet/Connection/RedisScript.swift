internal import CSystem
internal import SystemIO

/// A Lua script, which the server runs atomically.
struct RedisScript: Sendable, Equatable {
    let text: String
    let shape: ReplyShape
    /// The text's SHA-1 in hexadecimal, by which the server identifies scripts that it has run before.
    let digest: String

    init(_ shape: ReplyShape, _ text: String) {
        self.text = text
        self.shape = shape
        var digest = [UInt8](repeating: 0, count: 20)
        let bytes = Array(text.utf8)
        // If SHA-1 is unavailable, the server does not know the digest and asks for the text.
        _ = copenssl_sha1(bytes, bytes.count, &digest)
        self.digest = Hex.encode(digest)
    }
}
