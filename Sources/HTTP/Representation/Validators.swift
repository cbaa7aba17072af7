/// What tells two versions of a representation apart. An object, so that handing it on counts one reference, not one for each
/// of its texts.
final class Validators: Sendable {
    /// The strong entity tag with its quotes.
    let entityTag: [UInt8]
    /// Unix seconds of the last change.
    let lastModified: Int
    /// The same as it is sent, since most clients send it back letter for letter.
    let lastModifiedText: [UInt8]

    init(entityTag: String, lastModified: Int) {
        self.entityTag = Array(entityTag.utf8)
        self.lastModified = lastModified
        lastModifiedText = Array(HTTPDate.format(lastModified).utf8)
    }

    /// The date a field's value stands for; nil where it is none.
    func date(_ value: UnsafeRawBufferPointer, now: Int) -> Int? {
        if lastModifiedText.withUnsafeBytes({ value.equals($0) }) { return lastModified }
        return HTTPDate.parse(String(decoding: value, as: UTF8.self), now: now)
    }
}
