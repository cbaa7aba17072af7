internal import HTTP
internal import Renditions

extension HTTPResponse {
    /// A JSON document that no cache may store. Its keys are the names of properties in snake case.
    static func json(_ value: some Encodable, status: Int = 200, _ headers: HTTPHeaders = HTTPHeaders()) -> HTTPResponse {
        var headers = headers
        headers.append("Content-Type", "application/json")
        headers.append("Cache-Control", "no-store")
        return HTTPResponse(status: status, headers: headers, body: .bytes(JSONText.encode(value, inSnakeCase: true)))
    }
}
