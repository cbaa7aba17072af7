internal import SystemIO

/// The proxies whose fields about the client are trusted.
struct TrustedProxies: Sendable {
    private let proxies: ClientList
    private let field: ForwardedField

    /// - Parameter field: The fields that the proxies write.
    init(_ proxies: ClientList = ClientList(), _ field: ForwardedField = .xForwardedFor) {
        self.proxies = proxies
        self.field = field
    }

    /// The client of a request, and the trusted proxies between it and this server.
    struct Origin {
        /// The client's address; nil for a Unix socket whose peer is not trusted.
        let client: IPAddress?
        fileprivate let field: ForwardedField
        /// The list elements, counted from the end, that trusted proxies added; nil if the peer is not trusted.
        fileprivate let trustedElements: Int?

        /// Whether the peer is a trusted proxy.
        var isTrusted: Bool { trustedElements != nil }

        /// Whether the peer seems to be a proxy that the settings do not list; see ``TrustedProxies/mayBeUnlisted(_:)``.
        func isUnlistedProxy(_ head: RequestHead) -> Bool {
            !isTrusted && head.isForwarded && TrustedProxies.isInternal(client)
        }
    }

    /// The address of a client that trusted proxies do not name: the unspecified address, which indicates the absence of an
    /// address (RFC 4291 section 2.5.2). Such a client has the rights of neither a proxy nor a Unix socket's peer.
    private static let unknownClient = IPAddress.v6(high: 0, low: 0)

    /// Whether a peer is a trusted proxy.
    func contains(_ peer: IPAddress?) -> Bool { proxies.contains(peer) }

    /// Whether a peer may be a proxy that the settings do not list: it is not trusted, and its address is one of this machine or of a
    /// private network. It is one if a request from it has fields that proxies add.
    ///
    /// Many clients share the address of such a proxy, so the limits that keep one client from excluding others do not apply to it. A
    /// client on the Internet cannot evade them by sending the fields, but one that reaches the server from a private address can.
    func mayBeUnlisted(_ peer: IPAddress?) -> Bool { Self.isInternal(peer) && !contains(peer) }

    /// Loopback, private use, shared address space (RFC 6598), link-local and unique local addresses.
    private static let internalNetworks = ClientList(
        [
            "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16", "::1",
            "fc00::/7",
            "fe80::/10",
        ].compactMap { ClientPattern($0) })

    private static func isInternal(_ peer: IPAddress?) -> Bool {
        peer.map { internalNetworks.contains($0.unmapped) } ?? false
    }

    /// Finds the client of a request: the peer, or the last address before the trusted proxies in the fields that they write.
    ///
    /// The fields are read from their end, since only what trusted proxies added can be believed. An element without an
    /// address (`unknown`, an obfuscated name) ends the search: the elements before it may be forged.
    func origin(peer: IPAddress?, head: RequestHead) -> Origin {
        guard !proxies.isEmpty, proxies.contains(peer) else {
            return Origin(client: peer, field: field, trustedElements: nil)
        }
        var client = peer
        var count = 0
        head.forEachHop(in: field, .address) { hop in
            count += 1
            let address = hop.flatMap(Self.address)
            client = address ?? Self.unknownClient
            return address.map { proxies.contains($0) } ?? false
        }
        return Origin(client: client, field: field, trustedElements: count)
    }

    /// An address with or without quotes, brackets and port.
    private static func address(_ quoted: UnsafeRawBufferPointer) -> IPAddress? {
        let bytes = quoted.withoutQuotes
        if bytes.first == UInt8(ascii: "[") {
            guard let close = bytes.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            return IPAddress(bytes.slice(1..<close))?.unmapped
        }
        if let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon == bytes.lastIndex(of: UInt8(ascii: ":")) {
            return IPAddress(bytes.slice(0..<colon))?.unmapped
        }
        return IPAddress(bytes)?.unmapped
    }
}

extension TrustedProxies.Origin {
    /// The scheme by which the client reached the outermost trusted proxy: `X-Forwarded-Proto`, or `proto` of `Forwarded`, of
    /// the element that names the client. Nil if the fields name none, or the peer is not trusted.
    ///
    /// - Parameter head: The head in which the origin was found.
    func scheme(_ head: RequestHead) -> HTTPScheme? {
        guard let trustedElements else { return nil }
        var scheme: HTTPScheme?
        var count = 0
        // Some proxies pass on a single value instead of a list. At least one element is trusted if the peer is.
        head.forEachHop(in: field, .scheme) { hop in
            count += 1
            scheme = hop.flatMap { HTTPScheme($0.withoutQuotes) }
            return count < trustedElements
        }
        return scheme
    }
}

/// The scheme of the URL that a client requested.
package enum HTTPScheme: String, Sendable {
    case http, https

    init?(_ name: UnsafeRawBufferPointer) {
        if name.equalsIgnoringCase("https") {
            self = .https
        } else if name.equalsIgnoringCase("http") {
            self = .http
        } else {
            return nil
        }
    }
}

/// A property of a request that proxies report.
private enum ForwardedProperty {
    case address, scheme

    /// The field of `X-Forwarded-…` with the property.
    var field: KnownField {
        switch self {
        case .address: .forwardedFor
        case .scheme: .forwardedProto
        }
    }

    /// The name of the parameter of `Forwarded`.
    var parameter: StaticString {
        switch self {
        case .address: "for"
        case .scheme: "proto"
        }
    }
}

extension RequestHead {
    /// Calls `body` with the property that each proxy has reported, from the last proxy to the first, until it returns false. Nil
    /// is passed for a proxy that has reported none, and for a line of `Forwarded` whose elements cannot be separated.
    fileprivate func forEachHop(
        in field: ForwardedField, _ property: ForwardedProperty, _ body: (UnsafeRawBufferPointer?) -> Bool
    ) {
        guard field == .forwarded else { return forEachPartFromEnd(of: property.field, body) }
        guard has(.forwarded) else { return }
        for field in fields.reversed() where field.known == .forwarded {
            for element in bytes.slice(field.value).forwardedElements.reversed() {
                let value = element.flatMap { FieldElement(parameters: $0).parameter(property.parameter) }
                guard body(value) else { return }
            }
        }
    }

    /// Calls `body` with each part between commas in all fields of that kind, from the last to the first, until it returns false.
    /// These fields have no quoted strings: a quote that a client sends must not join the element of a proxy to its own.
    private func forEachPartFromEnd(of known: KnownField, _ body: (UnsafeRawBufferPointer) -> Bool) {
        guard has(known) else { return }
        for field in fields.reversed() where field.known == known {
            var rest = bytes.slice(field.value)
            while !rest.isEmpty {
                let comma = rest.lastIndex(of: UInt8(ascii: ","))
                let part = rest.slice((comma.map { $0 + 1 } ?? 0)..<rest.count).trimmed
                rest = rest.slice(0..<(comma ?? 0))
                if !part.isEmpty, !body(part) { return }
            }
        }
    }
}

extension UnsafeRawBufferPointer {
    /// The elements of a line of `Forwarded`, in order; one nil if a quoted string does not end, because it may contain elements.
    fileprivate var forwardedElements: [UnsafeRawBufferPointer?] {
        var list = FieldList(self)
        var elements: [UnsafeRawBufferPointer?] = []
        while let element = list.next() { elements.append(element) }
        return list.isUnterminated ? [nil] : elements
    }

    /// These bytes without the quotes around them.
    fileprivate var withoutQuotes: UnsafeRawBufferPointer {
        let quote = UInt8(ascii: "\"")
        return count >= 2 && first == quote && last == quote ? slice(1..<count - 1) : self
    }
}
