internal import HTTP

/// This service's name in `CDN-Loop` (RFC 8586). Fetches carry it, so a request that carries it was caused by a fetch of this
/// service.
struct LoopToken: Sendable {
    private let name: [UInt8]

    /// - Parameter name: A token or a host.
    init(_ name: String) {
        self.name = Array(name.utf8)
    }

    /// Whether an element of the request's fields has the name.
    func occurs(in request: borrowing HTTPRequest) -> Bool {
        var occurs = false
        request.forEachValue(of: "CDN-Loop") { if !occurs { occurs = self.occurs(in: $0) } }
        return occurs
    }

    /// The same for one field.
    func occurs(in value: UnsafeRawBufferPointer) -> Bool {
        name.withUnsafeBytes { name in FieldList(value).contains { FieldElement($0).value.equalsIgnoringCase(name) } }
    }
}
