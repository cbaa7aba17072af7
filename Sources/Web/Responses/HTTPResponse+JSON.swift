internal import HTTP
internal import Renditions

extension HTTPResponse {
    /// A JSON document that no cache may store. Its keys are the names of properties in snake case.
    static func json(_ value: some Encodable, status: Int = 200, _ headers: HTTPHeaders = HTTPHeaders()) -> HTTPResponse {
        var headers = headers
        headers.append(unstored("application/json"))
        return HTTPResponse(status: status, headers: headers, body: .bytes(JSONText.encode(value, inSnakeCase: true)))
    }

    /// The fields of a document that no cache may store.
    static func unstored(_ contentType: String) -> HTTPHeaders {
        ["Content-Type": contentType, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"]
    }
}

/// A member of a JSON object that is null without a value; other optional members are left out.
@propertyWrapper struct Nullable<Value: Encodable & Equatable & Sendable>: Encodable, Equatable, Sendable {
    var wrappedValue: Value?

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue)
    }
}
