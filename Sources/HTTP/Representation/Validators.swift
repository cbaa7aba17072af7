/// The validators of a representation (RFC 9110 section 8.8). An object, so that passing it on counts one reference, not one per
/// text.
final class Validators: Sendable {
    /// The strong entity tag with its quotes.
    let entityTag: [UInt8]
    /// The time of the last change in Unix seconds.
    let lastModified: Int
    /// ``lastModified`` as it is sent: most clients send it back unchanged.
    let lastModifiedText: [UInt8]

    init(entityTag: String, lastModified: Int) {
        self.entityTag = Array(entityTag.utf8)
        self.lastModified = lastModified
        lastModifiedText = Array(HTTPDate.format(lastModified).utf8)
    }

    /// The date in a field's value; nil where that is not a date.
    func date(_ value: UnsafeRawBufferPointer, now: Int) -> Int? {
        if lastModifiedText.withUnsafeBytes({ value.equals($0) }) { return lastModified }
        return HTTPDate.parse(String(decoding: value, as: UTF8.self), now: now)
    }
}

/// Comparisons of entity tags (RFC 9110 section 8.8.3.2). A tag includes its quotes.
enum EntityTag {
    /// Whether `text` is a strong tag: quotes around visible characters or bytes beyond ASCII, without a quote among them.
    static func isStrong(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return bytes.count >= 2 && bytes.first == UInt8(ascii: "\"") && bytes.last == UInt8(ascii: "\"")
            && bytes.dropFirst().dropLast().allSatisfy { $0 == 0x21 || $0 > 0x22 && $0 != 0x7F }
    }

    /// Whether `list` (the value of `If-None-Match` or `If-Match`) names `tag`, which is strong.
    ///
    /// - Parameter weakly: Whether to compare weakly, so that `W/"a"` names `"a"`.
    static func list(_ list: UnsafeRawBufferPointer, names tag: UnsafeRawBufferPointer, weakly: Bool) -> Bool {
        // The usual case: the tag of an earlier response.
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
