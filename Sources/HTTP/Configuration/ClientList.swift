package import SystemIO

/// An entry of a client list.
package struct ClientPattern: Hashable, Sendable, CustomStringConvertible {
    /// The entry as it was written.
    package let description: String
    /// The clients' address range; nil for clients on the Unix socket.
    fileprivate let block: AddressRange?

    /// Parses an address, a block such as `10.0.0.0/8`, or `unix`, which matches every process that may use the Unix socket.
    /// Nil for any other text.
    package init?(_ text: String) {
        let block = AddressRange(text)
        guard block != nil || text == "unix" else { return nil }
        description = text
        // Client addresses are also unmapped.
        self.block = block?.unmapped
    }
}

/// A list of clients, identified by address.
package struct ClientList: Hashable, Sendable {
    package var patterns: [ClientPattern]

    package init(_ patterns: [ClientPattern] = []) {
        self.patterns = patterns
    }

    var isEmpty: Bool { patterns.isEmpty }

    /// Whether the list contains the client.
    ///
    /// - Parameter client: An address such as ``HTTPRequest/clientAddress``; nil means a Unix socket.
    package func contains(_ client: IPAddress?) -> Bool {
        patterns.contains { pattern in
            guard let block = pattern.block, let client else { return pattern.block == nil && client == nil }
            return block.contains(client)
        }
    }
}
