internal import CSystem
internal import SystemIO

/// A Lua script, which the server runs as one step.
struct RedisScript: Sendable, Equatable {
    let text: String
    let shape: ReplyShape
    /// The SHA-1 of the text in hexadecimal, by which the server knows a script that it has run before.
    let digest: String

    init(_ shape: ReplyShape, _ text: String) {
        self.text = text
        self.shape = shape
        var digest = [UInt8](repeating: 0, count: 20)
        let bytes = Array(text.utf8)
        // Without SHA-1 the digest is unknown to the server, which then asks for the text.
        _ = copenssl_sha1(bytes, bytes.count, &digest)
        self.digest = Hex.encode(digest)
    }
}
