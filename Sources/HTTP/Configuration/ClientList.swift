package import SystemIO

/// An entry of a list of clients.
package struct ClientPattern: Hashable, Sendable, CustomStringConvertible {
    /// The entry as it was written.
    package let description: String
    /// The clients' addresses; nil for those on the Unix socket.
    fileprivate let block: AddressRange?

    /// Parses an address, a block such as `10.0.0.0/8`, or `unix`, which stands for every process that may use the Unix socket. Nil for any
    /// other text.
    package init?(_ text: String) {
        let block = AddressRange(text)
        guard block != nil || text == "unix" else { return nil }
        description = text
        // Addresses of clients are unmapped too.
        self.block = block?.unmapped
    }
}

/// A list of clients by address.
package struct ClientList: Hashable, Sendable {
    package var patterns: [ClientPattern]

    package init(_ patterns: [ClientPattern] = []) {
        self.patterns = patterns
    }

    /// Whether the list has no entries.
    var isEmpty: Bool { patterns.isEmpty }

    /// Whether the client is on the list.
    ///
    /// - Parameter client: An address such as ``HTTPRequest/clientAddress``; nil means a Unix socket.
    package func contains(_ client: IPAddress?) -> Bool {
        patterns.contains { pattern in
            guard let block = pattern.block, let client else { return pattern.block == nil && client == nil }
            return block.contains(client)
        }
    }
}
