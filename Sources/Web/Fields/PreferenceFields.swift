internal import HTTP
internal import Sandbox

// The preferences of a request: how soon it is answered, and whether it waits for the result.

/// The request field `Priority` (RFC 9218).
enum PriorityField {
    /// Returns the urgency in the field's parameter `u`; a visitor's urgency if the field has no valid one.
    ///
    /// Reads the part of a structured dictionary (RFC 9651) that is needed: the last `u` that is a whole number from 0 to 7.
    static func urgency(_ request: borrowing HTTPRequest) -> Urgency {
        var urgency = Urgency.visitor
        request.forEachValue(of: "Priority") { urgency = Self.urgency($0) ?? urgency }
        return urgency
    }

    /// Returns the urgency in the value of one field; nil if it has none.
    static func urgency(_ value: UnsafeRawBufferPointer) -> Urgency? {
        var urgency: Urgency?
        for member in FieldList(value) {
            let item = FieldElement(member).value
            guard item.count > 2, item[0] == UInt8(ascii: "u"), item[1] == UInt8(ascii: "="),
                let level = item.slice(2..<item.count).decimal, level <= 7
            else { continue }
            urgency = Urgency(level: level)
        }
        return urgency
    }
}

/// The request field `Cache-Control` (RFC 9111 section 5.2.1).
enum RequestCacheControl {
    /// Whether the client accepts only a stored response.
    static func namesOnlyIfCached(_ request: borrowing HTTPRequest) -> Bool {
        var isNamed = false
        request.forEachValue(of: "Cache-Control") { value in
            if !isNamed {
                isNamed = FieldList(value).contains { FieldElement($0).value.equalsIgnoringCase("only-if-cached") }
            }
        }
        return isNamed
    }
}

/// The request field `Prefer` (RFC 7240).
enum PreferField {
    /// Whether the client prefers an immediate answer to waiting for the result.
    static func namesAsync(_ request: borrowing HTTPRequest) -> Bool {
        var isNamed = false
        request.forEachValue(of: "Prefer") { if !isNamed { isNamed = namesAsync($0) } }
        return isNamed
    }

    /// Whether the value of one field prefers an immediate answer.
    static func namesAsync(_ value: UnsafeRawBufferPointer) -> Bool {
        FieldList(value).contains { FieldElement($0).value.equalsIgnoringCase("respond-async") }
    }
}

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

    /// Whether an element of one field has the name.
    func occurs(in value: UnsafeRawBufferPointer) -> Bool {
        name.withUnsafeBytes { name in FieldList(value).contains { FieldElement($0).value.equalsIgnoringCase(name) } }
    }
}
