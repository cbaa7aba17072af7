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

extension HTTPRequest {
    /// Whether an element of a field's list is this word.
    func names(_ word: String, in field: HTTPFieldName) -> Bool {
        var isNamed = false
        forEachValue(of: field) { isNamed = isNamed || FieldList($0).names(word) }
        return isNamed
    }
}

extension FieldList {
    /// Whether an element is this word, in any case and with any parameters.
    func names(_ word: String) -> Bool {
        var word = word
        return word.withUTF8 { word in contains { FieldElement($0).value.equalsIgnoringCase(UnsafeRawBufferPointer(word)) } }
    }
}
