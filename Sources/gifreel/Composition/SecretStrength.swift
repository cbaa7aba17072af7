internal import Settings

/// Finds secrets that may be guessed.
enum SecretStrength {
    /// A sentence for each weak secret, without its value.
    static func warnings(_ settings: Settings) -> [String] {
        let tokens = [
            ("admin.token", settings.admin.token, 16), ("admin.previous_token", settings.admin.previousToken, 16),
            ("webhooks.key", settings.webhooks.key, 32),
        ]
        let keys = settings.signing.keys.map { ("a signing key", $0 as String?, 32) }
        let named = settings.signing.named.sorted { $0.key < $1.key }.map { ("signing.keys.\($0).secret", $1.secret, 32) }
        return (tokens + keys + named).compactMap { name, secret, length in
            secret.flatMap { weakness(of: $0, length) }.map { "\(name) \($0) and may be guessed" }
        }
    }

    /// - Parameter length: The number of bytes at which a random text has enough entropy.
    private static func weakness(of secret: String, _ length: Int) -> String? {
        if secret.utf8.count < length { return "has fewer than \(length) bytes" }
        return Set(secret.utf8).count < leastVariety ? "repeats a few characters" : nil
    }

    /// 16 random hexadecimal digits have fewer different ones in 1 of 30,000 cases.
    private static let leastVariety = 6
}
