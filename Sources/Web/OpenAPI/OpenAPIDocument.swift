internal import HTTP
internal import Renditions

/// The document at `/openapi.json` (OpenAPI 3.1), composed from the tables of operations, options, schemas and problems.
enum OpenAPIDocument {
    /// - Parameter startedAt: The document's `Last-Modified`, in seconds since 1970.
    static func resource(_ policy: WebPolicy, crossOrigin: CrossOrigin, startedAt: Int) -> HTTPResource {
        let document = document(policy.presets, version: policy.version, publicURL: policy.publicURL)
        let bytes = JSONText.encode(document)
        var headers: HTTPHeaders = [
            "Cache-Control": "public, max-age=300, stale-while-revalidate=86400", "X-Content-Type-Options": "nosniff",
        ]
        headers.append(crossOrigin.fields)
        return HTTPResource(
            bytes: bytes, contentType: "application/json", entityTag: PageTag.of(bytes),
            lastModified: startedAt, headers: headers)
    }

    /// The document as a value.
    ///
    /// - Parameter publicURL: The address at which clients reach the service; nil for the document's own address.
    static func document(_ presets: RenditionPresets, version: String, publicURL: String?) -> JSONValue {
        var shared = SharedComponents()
        var paths: [String: [String: JSONValue]] = [:]
        for operation in APIOperation.table(presets) {
            let value = self.operation(operation)
            paths[operation.path, default: [:]][operation.method] = value
            if operation.method == "get" {
                paths[operation.path]?["head"] = head(value, operation.id)
            }
        }
        let places = paths.keys.sorted().flatMap { path in (paths[path] ?? [:]).keys.sorted().map { (path, $0) } }
        for (path, method) in places {
            if let operation = paths[path]?[method] { shared.count(operation) }
        }
        for (path, method) in places {
            if let operation = paths[path]?[method] { paths[path]?[method] = shared.referring(operation) }
        }
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
