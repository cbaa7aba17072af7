internal import SystemIO

/// A pattern of host names, such as `media.example.com`, `*.example.com` or `cdn-*.example.com`.
///
/// A leading `*.` matches one or more labels. Elsewhere, `*` matches any characters within a label. `*` alone matches every
/// host. An IP address matches only itself and `*`, because a pattern such as `*.1` would match unrelated networks.
package struct HostGlob: Hashable, Sendable {
    /// The pattern in lower case.
    package let text: String
    private let address: IPAddress?
    private let labels: [Substring]

    /// The pattern that matches every host.
    static let any = HostGlob()

    private init() {
        text = "*"
        address = nil
        labels = ["*"]
    }

    /// Returns nil if no host can match the pattern: it has an empty label, or a character that hosts cannot contain.
    package init?(_ pattern: String) {
        let withoutBrackets =
            pattern.hasPrefix("[") && pattern.hasSuffix("]") ? String(pattern.dropFirst().dropLast()) : pattern
        if let address = IPAddress(withoutBrackets) {
            text = address.description
            self.address = address
            labels = []
            return
        }
        text = pattern.lowercased()
        address = nil
        labels = text.split(separator: ".", omittingEmptySubsequences: false)
        // With a letter for each star, the pattern must be a valid host. A digit could turn the last label into a number.
        guard labels.contains(where: { $0.contains("*") }) else {
            guard let host = HostName(text), host.text == text else { return nil }
            return
        }
        guard HostName(text.replacing("*", with: "a")) != nil else { return nil }
    }

    /// Whether the pattern matches only one host, ``text``.
    var isLiteral: Bool { !text.utf8.contains(UInt8(ascii: "*")) }

    var hasLiteralEnd: Bool { address != nil || labels.last?.contains("*") == false }

    func matches(_ host: HostName) -> Bool {
        if text == "*" { return true }
        if let hostAddress = host.address { return hostAddress == address }
        if address != nil { return false }
        let given = host.text.split(separator: ".")
        if labels.first == "*" {
            let tail = labels.dropFirst()
            return given.count > tail.count && zip(tail, given.suffix(tail.count)).allSatisfy(Self.isMatch)
        }
        return given.count == labels.count && zip(labels, given).allSatisfy(Self.isMatch)
    }

    private static func isMatch(_ pattern: Substring, _ label: Substring) -> Bool {
        isMatch(Array(pattern.utf8), Array(label.utf8))
    }

    /// Whether `pattern` matches `label`. Backtracks only to the last star, so it takes at most `pattern.count × label.count`
    /// steps.
    private static func isMatch(_ pattern: [UInt8], _ label: [UInt8]) -> Bool {
        var (p, l) = (0, 0)
        var retry: (pattern: Int, label: Int)?
        while l < label.count {
            if p < pattern.count, pattern[p] == UInt8(ascii: "*") {
                p += 1
                retry = (p, l)
            } else if p < pattern.count, pattern[p] == label[l] {
                (p, l) = (p + 1, l + 1)
            } else if let start = retry {
                (p, l) = (start.pattern, start.label + 1)
                retry = (start.pattern, start.label + 1)
            } else {
                return false
            }
        }
        return pattern[p...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}
