internal import SystemIO

/// The proxies whose word about the client is believed.
struct TrustedProxies: Sendable {
    private let blocks: [AddressRange]
    private let trustsUnixSocket: Bool

    /// Parses the setting: addresses, blocks, and `unix` for whoever may use the Unix socket. Throws the entry that is none.
    init(_ entries: [String]) throws(Malformed) {
        var blocks: [AddressRange] = []
        for entry in entries where entry != "unix" {
            guard let block = AddressRange(entry) else { throw Malformed(entry: entry) }
            blocks.append(block)
        }
        self.blocks = blocks
        trustsUnixSocket = entries.contains("unix")
    }

    /// An entry that is neither an address nor a block.
    struct Malformed: Error {
        let entry: String
    }

    /// Whether nobody is trusted, which saves looking at the fields at all.
    var isEmpty: Bool { blocks.isEmpty && !trustsUnixSocket }

    func trusts(_ peer: IPAddress?) -> Bool {
        guard let peer else { return trustsUnixSocket }
        return blocks.contains { $0.contains(peer) }
    }

    /// The client of a request: the peer, or the last address before the trusted proxies in `Forwarded` (RFC 7239), or
    /// without that field in `X-Forwarded-For`.
    ///
    /// The fields are read from their end, since only what trusted proxies have added can be believed. An entry that is
    /// no address (`unknown`, an obfuscated name) ends the search: what stands before it is nobody's word.
    func client(peer: IPAddress?, head: RequestHead) -> IPAddress? {
        guard !isEmpty, trusts(peer) else { return peer }
        var hops: [IPAddress?] = []
        if head.has(.forwarded) {
            head.forEach(.forwarded) { value in
                value.forEachListElement { element in
                    hops.append(Self.forwardedFor(element))
                    return true
                }
            }
        } else {
            head.forEach(.forwardedFor) { value in
                value.forEachListElement { element in
                    hops.append(Self.address(element))
                    return true
                }
            }
        }
        var client = peer
        for hop in hops.reversed() {
            guard let hop else { break }
            client = hop
            if !trusts(hop) { break }
        }
        return client
    }

    /// The `for` parameter of one element of `Forwarded`.
    private static func forwardedFor(_ element: UnsafeRawBufferPointer) -> IPAddress? {
        for pair in element.split(separator: UInt8(ascii: ";")) {
            let pair = UnsafeRawBufferPointer(rebasing: pair).trimmed
            guard pair.count > 4, pair.slice(0..<4).equalsIgnoringCase("for=") else { continue }
            return address(pair.slice(4..<pair.count))
        }
        return nil
    }

    /// An address with or without quotes, brackets and port.
    private static func address(_ bytes: UnsafeRawBufferPointer) -> IPAddress? {
        var text = Substring(String(decoding: bytes, as: UTF8.self))
        if text.count >= 2, text.hasPrefix("\""), text.hasSuffix("\"") { text = text.dropFirst().dropLast() }
        if text.hasPrefix("[") {
            guard let close = text.firstIndex(of: "]") else { return nil }
            return IPAddress(String(text[text.index(after: text.startIndex)..<close]))?.unmapped
        }
        if let colon = text.firstIndex(of: ":"), colon == text.lastIndex(of: ":") { text = text[..<colon] }
        return IPAddress(String(text))?.unmapped
    }
}
