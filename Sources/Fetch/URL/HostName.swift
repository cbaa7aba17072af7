internal import Glibc
internal import SystemIO

/// A host in its canonical form: a DNS name, a dotted IPv4 address or an IPv6 address.
struct HostName: Hashable, Sendable {
    /// Lower-case ASCII; an IPv6 address in the form of RFC 5952, without brackets.
    let text: String
    /// The address; nil for a name.
    let address: IPAddress?

    var inURL: String {
        if case .v6 = address { return "[\(text)]" }
        return text
    }

    /// Parses a host as libcurl returns it: ASCII, an IPv6 address in brackets. One trailing dot is removed.
    ///
    /// Returns nil if `parsed` is neither a name nor an address. A host whose last label is a number is an IPv4 address (WHATWG
    /// URL standard) and must have four decimal parts.
    init?(_ parsed: String) {
        if parsed.hasPrefix("[") {
            guard parsed.hasSuffix("]"), let address = IPAddress(String(parsed.dropFirst().dropLast())),
                case .v6 = address
            else { return nil }
            self.init(text: address.description, address: address)
            return
        }
        var name = parsed.lowercased()
        if name.hasSuffix(".") { name.removeLast() }
        let labels = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard name.utf8.count <= Self.maxLength, labels.allSatisfy(Self.isLabel), let last = labels.last else { return nil }
        if Self.looksNumeric(last) {
            guard let address = IPAddress(name), case .v4 = address else { return nil }
            self.init(text: address.description, address: address)
        } else {
            self.init(text: name, address: nil)
        }
    }

    private init(text: String, address: IPAddress?) {
        self.text = text
        self.address = address
    }

    /// The limit of RFC 1035 section 2.3.4, without the root dot.
    private static let maxLength = 253

    /// 1 to 63 letters, digits, hyphens and underscores. Some names in use contain an underscore.
    private static func isLabel(_ label: Substring.UTF8View) -> Bool {
        (1...63).contains(label.count) && label.allSatisfy { $0.isLetterOrDigit || "-_".utf8.contains($0) }
    }

    private static func looksNumeric(_ label: Substring.UTF8View) -> Bool {
        if label.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) { return true }
        return label.starts(with: "0x".utf8) && label.dropFirst(2).allSatisfy { $0.hexDigit != nil }
    }
}
