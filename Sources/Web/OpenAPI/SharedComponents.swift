/// The parameters, bodies and responses that several operations of a document share. Each is written once, and operations refer to it: a
/// document without references is several times as large.
struct SharedComponents {
    /// The uses of each value, by the kind of component.
    private var uses: [String: [JSONValue: Int]] = [:]
    private var names: [String: [JSONValue: String]] = [:]

    /// The components by kind and name.
    private(set) var components: [String: [String: JSONValue]] = [:]

    private static let parameters = "parameters"
    private static let responses = "responses"
    private static let bodies = "requestBodies"

    /// Counts the values of an operation. Every operation must be counted before the first ``referring(_:)``.
    mutating func count(_ operation: JSONValue) {
        for (kind, _, value) in Self.values(of: operation) { uses[kind, default: [:]][value, default: 0] += 1 }
    }

    /// Returns the operation with references to the shared values.
    mutating func referring(_ operation: JSONValue) -> JSONValue {
        guard case .object(var members) = operation else { return operation }
        if case .list(let parameters)? = members[Self.parameters] {
            members[Self.parameters] = .list(parameters.map { reference(Self.parameters, name(of: $0), $0) })
        }
        if case .object(let responses)? = members[Self.responses] {
            var referring: [String: JSONValue] = [:]
            for status in responses.keys.sorted() {
                referring[status] = responses[status].map { reference(Self.responses, status, $0) }
            }
            members[Self.responses] = .object(referring)
        }
        if let body = members["requestBody"] { members["requestBody"] = reference(Self.bodies, "body", body) }
        return .object(members)
    }

    private static func values(of operation: JSONValue) -> [(kind: String, name: String, value: JSONValue)] {
        var values: [(String, String, JSONValue)] = []
        if case .list(let list)? = operation[parameters] { values += list.map { (parameters, "", $0) } }
        if case .object(let members)? = operation[responses] { values += members.map { (responses, $0.key, $0.value) } }
        if let body = operation["requestBody"] { values.append((bodies, "", body)) }
        return values
    }

    private func name(of parameter: JSONValue) -> String {
        if case .text(let name)? = parameter["name"] { name } else { "parameter" }
    }

    /// A reference to a value that is used more than once; any other value itself.
    ///
    /// - Parameter base: The name of the component; different values with the same one get numbers.
    private mutating func reference(_ kind: String, _ base: String, _ value: JSONValue) -> JSONValue {
        guard uses[kind]?[value] ?? 0 > 1 else { return value }
        var name = names[kind]?[value] ?? base
        if names[kind]?[value] == nil {
            var number = 1
            while components[kind]?[name] != nil {
                number += 1
                name = "\(base)-\(number)"
            }
            names[kind, default: [:]][value] = name
            components[kind, default: [:]][name] = value
        }
        return ["$ref": .text("#/components/\(kind)/\(name)")]
    }
}
