@testable import Web

/// What tests compare with the routes and with responses.
extension APIOperation {
    private static let sourceURL = "https%3A%2F%2Fexample.com%2Fa.gif"

    /// A target of the operation, with the parameters that it requires. The mount in it is called `example`.
    var example: String {
        switch path {
        case "/{mount}/{path}": "/example/a.mp4"
        case "/object/{name}": "/object/\(String(repeating: "0", count: 64)).mp4"
        case "/status/{id}": "/status/\(String(repeating: "0", count: 32))"
        case "/prewarm/{id}": "/prewarm/1"
        case "/cache" where method == "delete": "/cache?all=true"
        default:
            path.replacing("{source}", with: Self.sourceURL)
                + (parameters.contains { $0.name == "url" && $0.isRequired } ? "?url=\(Self.sourceURL)" : "")
        }
    }

    /// The names of the parameters in the query.
    var queryNames: [String] { parameters.filter { $0.place == "query" }.map(\.name) }

    /// The statuses of all responses, those of problems included.
    var statuses: Set<Int> { Set(answers.map(\.status) + (problems + ProblemTable.everywhere).map(\.status)) }
}
