package import SystemIO

/// A list of clients by their address.
package struct ClientList: Sendable {
    private let blocks: [AddressRange]
    private let hasUnixSocket: Bool

    /// Nobody.
    package init() {
        blocks = []
        hasUnixSocket = false
    }

    /// Parses addresses, blocks (`10.0.0.0/8`) and `unix`, which is whoever may use the Unix socket.
    ///
    /// - Returns: Nil where an entry is none of these.
    package init?(_ entries: [String]) {
        var blocks: [AddressRange] = []
        for entry in entries where entry != "unix" {
            guard let block = AddressRange(entry) else { return nil }
            blocks.append(block)
        }
        self.blocks = blocks
        hasUnixSocket = entries.contains("unix")
    }

    /// Whether the client is on the list.
    ///
    /// - Parameter client: As ``HTTPRequest/clientAddress`` has it; nil is a Unix socket.
    package func contains(_ client: IPAddress?) -> Bool {
        guard let client else { return hasUnixSocket }
        return blocks.contains { $0.contains(client) }
    }
}
