internal import CLinux
package import SystemIO

/// A list of clients by address.
package struct ClientList: Sendable {
    private let blocks: [AddressRange]
    private let hasUnixSocket: Bool

    /// An entry that is neither an address nor a block nor `unix`.
    struct Malformed: Error {
        let entry: String
    }

    /// An empty list.
    package init() {
        blocks = []
        hasUnixSocket = false
    }

    /// Parses addresses, blocks (`10.0.0.0/8`) and `unix`, which includes every process that may use the Unix socket.
    ///
    /// - Throws: The first entry that is none of these.
    init(parsing entries: [String]) throws(Malformed) {
        var blocks: [AddressRange] = []
        for entry in entries where entry != "unix" {
            guard let block = AddressRange(entry) else { throw Malformed(entry: entry) }
            // Addresses of clients are unmapped too.
            blocks.append(block.unmapped)
        }
        self.blocks = blocks
        hasUnixSocket = entries.contains("unix")
    }

    /// Parses entries as ``init(parsing:)`` does.
    ///
    /// - Returns: Nil if an entry is none of these.
    package init?(_ entries: [String]) {
        guard let list = try? ClientList(parsing: entries) else { return nil }
        self = list
    }

    /// Whether the list has no entries.
    var isEmpty: Bool { blocks.isEmpty && !hasUnixSocket }

    /// Whether the client is on the list.
    ///
    /// - Parameter client: An address such as ``HTTPRequest/clientAddress``; nil means a Unix socket.
    package func contains(_ client: IPAddress?) -> Bool {
        guard let client else { return hasUnixSocket }
        return blocks.contains { $0.contains(client) }
    }
}

extension IPAddress {
    /// The address of a socket's end; nil for a Unix socket. A mapped IPv4 address becomes an IPv4 address, so that a client is the
    /// same on a socket that serves both.
    init?(_ address: clinux_address) {
        switch address.family {
        case 4: self = .v4(UInt32(truncatingIfNeeded: address.low))
        case 6: self = IPAddress.v6(high: address.high, low: address.low).unmapped
        default: return nil
        }
    }
}
