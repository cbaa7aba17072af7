internal import SystemIO

/// A pattern of host names, such as `media.example.com`, `*.example.com` or `cdn-*.example.com`.
///
/// A leading `*.` stands for one label or more, a `*` elsewhere for any run of characters inside a label, and `*` alone for
/// every host. An IP address is matched only by itself or by `*`, so that `*.1` does not mean half the internet.
package struct HostGlob: Hashable, Sendable {
    /// The pattern in lower case.
    package let text: String
    private let address: IPAddress?
    private let labels: [Substring]

    /// Every host.
    static let any = HostGlob()

    private init() {
        text = "*"
        address = nil
        labels = ["*"]
    }

    /// Nil for what could never match a host: empty labels, characters that no host has.
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
        // With the stars replaced it has to be a host; the letter keeps the last label from counting as a number.
        guard labels.contains(where: { $0.contains("*") }) else {
            guard let host = HostName(text), host.text == text else { return nil }
            return
        }
        guard HostName(text.replacing("*", with: "a")) != nil else { return nil }
    }

    /// Whether the last label, or the address, is written out.
    var hasLiteralEnd: Bool { address != nil || labels.last?.contains("*") == false }

    /// Whether `host` is one of those meant.
    func matches(_ host: HostName) -> Bool {
        if text == "*" { return true }
        if let hostAddress = host.address { return hostAddress == address }
        if address != nil { return false }
        let given = host.text.split(separator: ".")
        if labels.first == "*" {
            let tail = labels.dropFirst()
            return given.count > tail.count && zip(tail, given.suffix(tail.count)).allSatisfy(Self.label)
        }
        return given.count == labels.count && zip(labels, given).allSatisfy(Self.label)
    }

    private static func label(_ pattern: Substring, _ label: Substring) -> Bool {
        Self.label(Array(pattern.utf8), Array(label.utf8))
    }

    /// Matches with one place to go back to, so that it takes `pattern.count × label.count` steps at most.
    private static func label(_ pattern: [UInt8], _ label: [UInt8]) -> Bool {
        var (p, l) = (0, 0)
        var retry: (pattern: Int, label: Int)?
        while l < label.count {
            if p < pattern.count, pattern[p] == UInt8(ascii: "*") {
                p += 1
                retry = (p, l)
            } else if p < pattern.count, pattern[p] == label[l] {
                (p, l) = (p + 1, l + 1)
            } else if let place = retry {
                (p, l) = (place.pattern, place.label + 1)
                retry = (place.pattern, place.label + 1)
            } else {
                return false
            }
        }
        return pattern[p...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}
