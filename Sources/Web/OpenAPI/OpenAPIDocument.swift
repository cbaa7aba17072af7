internal import HTTP
internal import Renditions

/// The document at `/openapi.json` (OpenAPI 3.1), composed from the tables of operations, options, schemas and problems.
enum OpenAPIDocument {
    /// - Parameter startedAt: The document's `Last-Modified`, in seconds since 1970.
    static func resource(_ policy: WebPolicy, crossOrigin: CrossOrigin, startedAt: Int) -> HTTPResource {
        let document = document(policy.presets, version: policy.version, publicURL: policy.publicURL)
        var headers: HTTPHeaders = [
            "Cache-Control": "public, max-age=300, stale-while-revalidate=86400", "X-Content-Type-Options": "nosniff",
        ]
        headers.append(crossOrigin.fields)
        return HTTPResource(JSONText.encode(document), "application/json", lastModified: startedAt, headers: headers)
    }

    /// The document as a value.
    ///
    /// - Parameter publicURL: The address at which clients reach the service; nil for the document's own address.
    static func document(_ presets: RenditionPresets, version: String, publicURL: String?) -> JSONValue {
        let operations = APIOperation.table(presets).flatMap { operation in
            let value = self.operation(operation)
            let head = operation.method == "get" ? [(operation.path, "head", head(value, operation.id))] : []
            return [(operation.path, operation.method, value)] + head
        }.sorted { ($0.0, $0.1) < ($1.0, $1.1) }
        var shared = SharedComponents(of: operations.map(\.2))
        var paths: [String: [String: JSONValue]] = [:]
        for (path, method, operation) in operations { paths[path, default: [:]][method] = shared.referring(operation) }
        var components: [String: JSONValue] = shared.components.mapValues { .object($0) }
        components["schemas"] = .object(APISchemas.named)
        components["securitySchemes"] = ["token": ["type": "http", "scheme": "bearer"]]
        return [
            "openapi": "3.1.0",
            "info": [
                "title": "Gifreel", "version": .text(version),
                "description":
                    "Converts animated GIFs to videos. PURGE of a rendition's path removes all renditions of its source.",
                "license": ["name": "MIT", "identifier": "MIT"],
            ],
            "servers": [["url": .text(publicURL ?? "/")]],
            "paths": .object(paths.mapValues(JSONValue.object)),
            "components": .object(components),
        ]
    }

    private static func operation(_ operation: APIOperation) -> JSONValue {
        var value: [String: JSONValue] = [
            "operationId": .text(operation.id), "summary": .text(operation.summary),
            "parameters": .list(operation.parameters.map(parameter)), "responses": .object(responses(operation)),
        ]
        if !operation.body.isEmpty {
            value["requestBody"] = ["required": true, "content": content(operation.body)]
        }
        if operation.problems.contains(where: { $0.status == 401 }) {
            let token: JSONValue = ["token": []]
            // Without a token, the address of the client may suffice.
            value["security"] = .list(operation.needsToken ? [token] : [[:], token])
        }
        return .object(value)
    }

    /// Returns the HEAD operation for a GET operation: its responses have no bodies.
    private static func head(_ get: JSONValue, _ id: String) -> JSONValue {
        guard case .object(var value) = get, case .object(let responses)? = value["responses"] else { return get }
        value["operationId"] = .text("head_" + id.dropFirst("get_".count))
        // The summary would repeat that of GET.
        value["summary"] = nil
        value["responses"] = .object(
            responses.mapValues { response in
                guard case .object(var members) = response else { return response }
                members["content"] = nil
                return .object(members)
            })
        return .object(value)
    }

    private static func parameter(_ parameter: APIOperation.Parameter) -> JSONValue {
        [
            "name": .text(parameter.name), "in": .text(parameter.place), "required": .bool(parameter.isRequired),
            "schema": parameter.schema, "description": .text(parameter.summary),
        ]
    }

    private static func content(_ schemas: [String: JSONValue]) -> JSONValue {
        .object(schemas.mapValues { ["schema": $0] })
    }

    private static func responses(_ operation: APIOperation) -> [String: JSONValue] {
        var responses: [String: JSONValue] = [:]
        for answer in operation.answers {
            var value: [String: JSONValue] = ["description": .text(answer.summary)]
            if !answer.content.isEmpty { value["content"] = content(answer.content) }
            if !answer.fields.isEmpty {
                value["headers"] = .object(
                    Dictionary(uniqueKeysWithValues: answer.fields.map { ($0, ["schema": APISchemas.text]) }))
            }
            responses[String(answer.status)] = .object(value)
        }
        let problems = Dictionary(grouping: operation.problems + ProblemTable.everywhere, by: \.status)
        for (status, rows) in problems {
            var content: [String: JSONValue] = [ProblemDocument.contentType: APISchemas.problem(rows)]
            // Errors of pages are pages for browsers.
            if operation.hasErrorPages {
                content["text/html; charset=utf-8"] = APISchemas.text
            }
            responses[String(status)] = [
                "description": .text(HTTPStatus.reason(status)), "content": Self.content(content),
            ]
        }
        return responses
    }
}

/// The parameters, bodies and responses that several operations of a document share. Each is written once, and operations refer
/// to it: a document without references is several times as large.
private struct SharedComponents {
    private var uses: [JSONValue: Int] = [:]
    private var references: [JSONValue: JSONValue] = [:]
    /// The components by kind and name.
    private(set) var components: [String: [String: JSONValue]] = [:]

    init(of operations: [JSONValue]) {
        for operation in operations {
            _ = Self.replacing(operation) { _, _, value in
                uses[value, default: 0] += 1
                return value
            }
        }
    }

    /// Returns the operation with references to the shared values. Different values with the same name get numbers.
    mutating func referring(_ operation: JSONValue) -> JSONValue {
        Self.replacing(operation) { kind, base, value in
            if let reference = references[value] { return reference }
            guard uses[value] ?? 0 > 1 else { return value }
            var (name, number) = (base, 1)
            while components[kind]?[name] != nil {
                number += 1
                name = "\(base)-\(number)"
            }
            components[kind, default: [:]][name] = value
            let reference: JSONValue = ["$ref": .text("#/components/\(kind)/\(name)")]
            references[value] = reference
            return reference
        }
    }

    /// Replaces each value that operations may share.
    ///
    /// - Parameter replacement: Receives the kind of component, a name for it and the value.
    private static func replacing(
        _ operation: JSONValue, _ replacement: (String, String, JSONValue) -> JSONValue
    ) -> JSONValue {
        guard case .object(var members) = operation else { return operation }
        if case .list(let parameters)? = members["parameters"] {
            members["parameters"] = .list(
                parameters.map {
                    guard case .text(let name)? = $0["name"] else { return $0 }
                    return replacement("parameters", name, $0)
                })
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
}
