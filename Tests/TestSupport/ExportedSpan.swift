import Foundation

/// A span as an OTLP exporter sends it in JSON.
package struct ExportedSpan: Decodable, Sendable {
    private struct Attribute: Decodable {
        struct Value: Decodable {
            let stringValue: String?
            let intValue: String?
        }
        let key: String
        let value: Value
    }

    private struct Status: Decodable {
        let code: Int
    }

    private struct Document: Decodable {
        struct Resource: Decodable {
            struct Scope: Decodable {
                let spans: [ExportedSpan]
            }
            let scopeSpans: [Scope]
        }
        let resourceSpans: [Resource]
    }

    package let traceId: String
    package let spanId: String
    package let parentSpanId: String?
    package let name: String
    package let kind: Int
    package let startTimeUnixNano: String
    package let endTimeUnixNano: String
    private let attributes: [Attribute]?
    private let status: Status?

    /// The spans of a document.
    ///
    /// - Parameter document: The body of one request of the exporter.
    package static func all(in document: [UInt8]) throws -> [ExportedSpan] {
        try JSONDecoder().decode(Document.self, from: Data(document)).resourceSpans.flatMap(\.scopeSpans).flatMap(\.spans)
    }

    /// The value of a text or a whole number.
    package subscript(_ attribute: String) -> String? {
        attributes?.first { $0.key == attribute }.flatMap { $0.value.stringValue ?? $0.value.intValue }
    }

    package var hasAttributes: Bool { attributes?.isEmpty == false }

    /// The code of the status; nil for a step without an error.
    package var statusCode: Int? { status?.code }
}
