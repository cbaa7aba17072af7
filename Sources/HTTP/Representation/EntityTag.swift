/// Comparing entity tags (RFC 9110 section 8.8.3.2). A tag is kept as it is sent, with its quotes.
enum EntityTag {
    /// Whether `text` is a strong tag: quotes around visible characters or bytes past ASCII, and no quote inside.
    static func isStrong(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return bytes.count >= 2 && bytes.first == UInt8(ascii: "\"") && bytes.last == UInt8(ascii: "\"")
            && bytes.dropFirst().dropLast().allSatisfy { $0 == 0x21 || $0 > 0x22 && $0 != 0x7F }
    }

    /// Whether `list` (the value of `If-None-Match` or `If-Match`) names `tag`, which is strong.
    ///
    /// - Parameter weakly: With weak comparison `W/"a"` names `"a"`; with strong comparison it does not.
    static func list(_ list: UnsafeRawBufferPointer, names tag: UnsafeRawBufferPointer, weakly: Bool) -> Bool {
        // What clients nearly always send: the one tag they were given.
        if list.equals(tag) || list.equals("*") { return true }
        var found = false
        list.forEachListElement { element in
            var candidate = element
            if weakly, element.count > 2, element[0] == UInt8(ascii: "W"), element[1] == UInt8(ascii: "/") {
                candidate = element.slice(2..<element.count)
            }
            found = candidate.equals(tag)
            return !found
        }
        return found
    }
}
