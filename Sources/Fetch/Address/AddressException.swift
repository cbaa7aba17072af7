internal import SystemIO

/// An entry of `sources.allow_private`: an origin that may be fetched from though its address or port is special.
///
/// - `127.0.0.1`, `::1`, `10.0.0.0/8`, `fd00::/8`: addresses, by whatever name they were reached.
/// - `media.internal`, `*.svc.cluster.local`: names, whatever addresses they have. Whoever answers for the name in the DNS is trusted.
/// - Each with `:port` behind it (`10.0.0.7:9000`, `[::1]:9000`, `media.internal:9000`) for that port alone; without it any
///   port is meant, also one that `sources.ports` does not list.
package struct AddressException: Hashable, Sendable, CustomStringConvertible {
    private enum Target: Hashable {
        case range(AddressRange)
        case host(HostGlob)
    }

    private let target: Target
    private let port: Int?
    /// The entry as it was written.
    package let description: String

    /// Reads one entry. Nil where it is none of the above, and for names that end in a pattern, such as `*`: that would switch
    /// the protection off in passing.
    package init?(_ text: String) {
        guard case (var name, let port)? = PortSuffix.split(text[...]) else { return nil }
        description = text
        self.port = port
        if name.hasPrefix("["), name.hasSuffix("]") { name = name.dropFirst().dropLast() }
        if let range = AddressRange(String(name)) {
            target = .range(range)
        } else if let glob = HostGlob(String(name)), glob.hasLiteralEnd {
            target = .host(glob)
        } else {
            return nil
        }
    }

    /// Whether a connection to `address` and `port`, made for `url`'s host, is meant.
    func covers(_ address: IPAddress, port: Int, host: HostName) -> Bool {
        guard coversPort(port) else { return false }
        return switch target {
        case .range(let range): range.contains(address)
        case .host(let glob): glob.matches(host)
        }
    }

    /// Whether, before any address is known, `host` and `port` could still turn out to be meant.
    func mayCover(port: Int, host: HostName) -> Bool {
        guard coversPort(port) else { return false }
        return switch target {
        case .range(let range): host.address.map(range.contains) ?? true
        case .host(let glob): glob.matches(host)
        }
    }

    private func coversPort(_ other: Int) -> Bool { port == nil || port == other }
}
