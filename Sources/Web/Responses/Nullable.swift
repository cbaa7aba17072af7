/// A member of a JSON object that is null while it has no value; other optional members are left out then.
@propertyWrapper struct Nullable<Value: Encodable & Equatable & Sendable>: Encodable, Equatable, Sendable {
    var wrappedValue: Value?

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue)
    }
}
