package import SystemIO

/// Which addresses and ports may be connected to. A pure value: it looks nothing up and remembers nothing.
///
/// It is asked with the very address that is about to be connected to, so that no second answer of the DNS can differ.
package struct AddressPolicy: Sendable {
    /// The ports that public addresses may be reached at.
    package let ports: Set<Int>
    /// What is let through in spite of its address or port.
    package let exceptions: [AddressException]
    /// The network's own NAT64: an address in one of these is judged by the IPv4 address it carries. An address in a NAT64
    /// prefix that is not named here is refused.
    package let translationPrefixes: [TranslationPrefix]

    package init(ports: Set<Int>, exceptions: [AddressException] = [], translationPrefixes: [TranslationPrefix] = []) {
        self.ports = ports
        self.exceptions = exceptions
        self.translationPrefixes = translationPrefixes
    }

    /// Why `address` at `port` may not be connected to for `url`, or nil where it may.
    package func refusal(of address: IPAddress, port: Int, for url: SourceURL) -> AddressRefusal? {
        let address = translationPrefixes.lazy.compactMap { $0.translated(address) }.first ?? address
        if exceptions.contains(where: { $0.covers(address, port: port, host: url.hostName) }) { return nil }
        if let purpose = SpecialPurposeAddresses.purpose(of: address) { return .address(purpose: purpose) }
        return ports.contains(port) ? nil : .port(port)
    }

    /// Why `url` may not be fetched whatever address its host has, or nil where that has to be seen.
    package func refusal(of url: SourceURL) -> AddressRefusal? {
        if let address = url.hostName.address { return refusal(of: address, port: url.port, for: url) }
        if ports.contains(url.port) { return nil }
        return exceptions.contains { $0.mayCover(port: url.port, host: url.hostName) } ? nil : .port(url.port)
    }
}
