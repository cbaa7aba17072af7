internal import HTTP
package import Logging
internal import OTLP
internal import Tracing

// The id and the trace of a request, carried by the tasks that process it (`ServiceContext.current`).

private enum RequestIDKey: ServiceContextKey {
    typealias Value = String
    static let nameOverride: String? = "request-id"
}

extension ServiceContext {
    /// The request's `X-Request-Id`.
    var requestID: String? {
        get { self[RequestIDKey.self] }
        set { self[RequestIDKey.self] = newValue }
    }

    /// The id of a request, and the trace of its caller.
    init(_ request: borrowing HTTPRequest) {
        self = .topLevel
        requestID = request.id
        guard let parent = request.header("traceparent") else { return }
        let fields = ["traceparent": parent, "tracestate": request.header("tracestate")].compactMapValues { $0 }
        TraceContextPropagator().extract(fields, into: &self, using: FieldDictionary())
    }
}

private struct FieldDictionary: Extractor {
    func extract(key: String, from carrier: [String: String]) -> String? { carrier[key] }
}

extension Logger.MetadataProvider {
    /// Adds the request's id and trace to each log line of its tasks.
    package static let request = Logger.MetadataProvider {
        var metadata: Logger.Metadata = [:]
        if let id = ServiceContext.current?.requestID { metadata["request_id"] = "\(id)" }
        if let trace = ServiceContext.current?.trace {
            metadata["trace_id"] = "\(trace.traceID)"
            metadata["span_id"] = "\(trace.spanID)"
        }
        return metadata
    }
}
