/// The name of a header field. It can only be written as a literal, so no data ever becomes a field name.
package struct HTTPFieldName: Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    let literal: StaticString

    package init(stringLiteral literal: StaticString) {
        assert(literal.hasPointerRepresentation && literal.bytes.allSatisfy(\.isToken), "not a field name: \(literal)")
        self.literal = literal
    }

    package var description: String { literal.description }

    /// The name's bytes, which live as long as the program.
    var bytes: UnsafeRawBufferPointer { literal.bytes }
}

extension StaticString {
    /// The literal's UTF-8, which lives as long as the program.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: utf8Start, count: utf8CodeUnitCount) }
}
