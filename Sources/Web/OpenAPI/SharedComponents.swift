/// The parameters, bodies and responses that several operations of a document share. Each is written once, and operations refer
/// to it: a document without references is several times as large.
struct SharedComponents {
    /// The uses of each value, by the kind of component.
    private var uses: [String: [JSONValue: Int]] = [:]
    private var names: [String: [JSONValue: String]] = [:]

    /// The components by kind and name.
    private(set) var components: [String: [String: JSONValue]] = [:]

    /// Counts the values of an operation. Every operation must be counted before the first ``referring(_:)``.
    mutating func count(_ operation: JSONValue) {
        _ = Self.replacing(operation) { kind, _, value in
            uses[kind, default: [:]][value, default: 0] += 1
            return value
        }
    }

    /// Returns the operation with references to the shared values.
    mutating func referring(_ operation: JSONValue) -> JSONValue {
        Self.replacing(operation) { reference($0, $1, $2) }
    }

    /// Replaces each value that operations may share.
    ///
    /// - Parameter replacement: Receives the kind of component, a name for it and the value.
    private static func replacing(_ operation: JSONValue, _ replacement: (String, String, JSONValue) -> JSONValue) -> JSONValue
    {
        guard case .object(var members) = operation else { return operation }
        if case .list(let parameters)? = members["parameters"] {
            members["parameters"] = .list(parameters.map { replacement("parameters", name(of: $0), $0) })
        }
        if case .object(var responses)? = members["responses"] {
            for (status, response) in responses.sorted(by: { $0.key < $1.key }) {
                responses[status] = replacement("responses", status, response)
            }
            members["responses"] = .object(responses)
        }
        if let body = members["requestBody"] { members["requestBody"] = replacement("requestBodies", "body", body) }
        return .object(members)
    }

    private static func name(of parameter: JSONValue) -> String {
        if case .text(let name)? = parameter["name"] { name } else { "parameter" }
    }

    /// Returns a reference to a value that is used more than once, and any other value itself.
    ///
    /// - Parameter base: The name of the component; different values with the same name get numbers.
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
