internal import SystemIO

struct TrustedProxies: Sendable {
    private let proxies: ClientList
    private let field: ForwardedField

    /// - Parameter field: The fields that the proxies write.
    init(_ proxies: ClientList = ClientList(), _ field: ForwardedField = .xForwardedFor) {
        self.proxies = proxies
        self.field = field
    }

    /// The client of a request, with the number of list elements added by trusted proxies.
    struct Origin {
        /// The client's address; nil for an untrusted peer on a Unix socket that is no proxy.
        let client: IPAddress?
        fileprivate let field: ForwardedField
        /// The number of list elements, counted from the end, that trusted proxies added; nil if the peer is not trusted.
        fileprivate let trustedElements: Int?
        /// Whether ``client`` may be a proxy that hides the actual client: an untrusted peer sent fields that proxies add,
        /// or the trusted proxies name no address but their own.
        let mayBeProxy: Bool

        var isTrusted: Bool { trustedElements != nil }

        /// Whether the peer seems to be a proxy missing from the settings; see ``TrustedProxies/mayBeUnlisted(_:)``.
        var isUnlistedProxy: Bool { !isTrusted && mayBeProxy && TrustedProxies.isInternal(client) }
    }

    /// The client address if trusted proxies name none, or behind an untrusted proxy on a Unix socket: the unspecified address,
    /// which indicates that there is none (RFC 4291 section 2.5.2). Such a client has neither the rights of a proxy nor those of
    /// a Unix socket's peer, which no limit of clients applies to.
    private static let unknownClient = IPAddress.v6(high: 0, low: 0)

    func contains(_ peer: IPAddress?) -> Bool { proxies.contains(peer) }

    /// Whether a peer may be a proxy missing from the settings: it is untrusted, and it uses a Unix socket, or its address
    /// belongs to this machine or a private network. It counts as a proxy once a request from it has fields that proxies add.
    ///
    /// Many clients share the address of such a proxy, so limits that keep one client from excluding others do not apply to it.
    /// A client on the Internet cannot evade them by sending the fields, but a client that connects from a private address can.
    func mayBeUnlisted(_ peer: IPAddress?) -> Bool { Self.isInternal(peer) && !contains(peer) }

    /// Loopback, private-use, shared (RFC 6598), link-local and unique local addresses, and ``unknownClient``.
    private static let internalNetworks = ClientList(
        [
            "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16", "::", "::1",
            "fc00::/7", "fe80::/10",
        ].compactMap { ClientPattern($0) })

    private static func isInternal(_ peer: IPAddress?) -> Bool {
        internalNetworks.contains((peer ?? unknownClient).unmapped)
    }

    /// Returns the client of a request: the peer, or the last address before the trusted proxies in the fields that they write.
    ///
    /// Reads the fields from their end, because only elements added by trusted proxies are reliable. An element without an
    /// address (`unknown`, an obfuscated name) ends the search: the elements before it may be forged.
    func origin(peer: IPAddress?, head: RequestHead) -> Origin {
        guard !proxies.isEmpty, proxies.contains(peer) else {
            let client = peer ?? (head.isForwarded ? Self.unknownClient : nil)
            return Origin(client: client, field: field, trustedElements: nil, mayBeProxy: head.isForwarded)
        }
        var client = peer
        var count = 0
        var mayBeProxy = head.isForwarded
        head.forEachHop(in: field, .address) { hop in
            count += 1
            let address = hop.flatMap(Self.address)
            client = address ?? Self.unknownClient
            mayBeProxy = address.map { proxies.contains($0) } ?? false
            return mayBeProxy
        }
        return Origin(client: client, field: field, trustedElements: count, mayBeProxy: mayBeProxy)
    }

    /// Parses an address with or without quotes, brackets and port.
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
    /// Returns the scheme by which the client reached the outermost trusted proxy: `X-Forwarded-Proto`, or `proto` in
    /// `Forwarded`, of the element that names the client. Nil if the fields contain no scheme or the peer is not trusted.
    ///
    /// - Parameter head: The head from which the origin was determined.
    func scheme(_ head: RequestHead) -> HTTPScheme? {
        guard let trustedElements else { return nil }
        var scheme: HTTPScheme?
        var count = 0
        // Some proxies forward a single value instead of a list. At least one element is trusted if the peer is.
        head.forEachHop(in: field, .scheme) { hop in
            count += 1
            scheme = hop.flatMap { HTTPScheme($0.withoutQuotes) }
            return count < trustedElements
        }
        return scheme
    }
}

/// The scheme of a URL requested by a client.
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

private enum ForwardedProperty {
    case address, scheme

    var field: KnownField {
        switch self {
        case .address: .forwardedFor
        case .scheme: .forwardedProto
        }
    }

    var parameter: StaticString {
        switch self {
        case .address: "for"
        case .scheme: "proto"
        }
    }
}

extension RequestHead {
    /// Calls `body` with each proxy's value of the property, from the last proxy to the first, until it returns false. Passes
    /// nil for a proxy that reported none, and for a `Forwarded` line whose elements cannot be separated.
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

    /// Calls `body` with each comma-separated part of all fields of the kind, from last to first, until it returns false. These
    /// fields have no quoted strings: a client's quote must not merge a proxy's element with the client's own.
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
    /// The elements of a `Forwarded` line, in order; a single nil if a quoted string, which may contain elements, does not end.
    fileprivate var forwardedElements: [UnsafeRawBufferPointer?] {
        var list = FieldList(self)
        var elements: [UnsafeRawBufferPointer?] = []
        while let element = list.next() { elements.append(element) }
        return list.isUnterminated ? [nil] : elements
    }

    fileprivate var withoutQuotes: UnsafeRawBufferPointer {
        let quote = UInt8(ascii: "\"")
        return count >= 2 && first == quote && last == quote ? slice(1..<count - 1) : self
    }
}
