internal import HTTP
package import Logging
internal import ServiceContextModule

// The id and the trace of a request, carried by the tasks that process it (`ServiceContext.current`).

private enum RequestIDKey: ServiceContextKey {
    typealias Value = String
    static let nameOverride: String? = "request-id"
}

private enum TraceKey: ServiceContextKey {
    typealias Value = TraceParent
    static let nameOverride: String? = "traceparent"
}

private enum TraceStateKey: ServiceContextKey {
    typealias Value = String
    static let nameOverride: String? = "tracestate"
}

extension ServiceContext {
    /// The request's `X-Request-Id`.
    var requestID: String? {
        get { self[RequestIDKey.self] }
        set { self[RequestIDKey.self] = newValue }
    }

    /// This service's own span in the caller's trace.
    var trace: TraceParent? {
        get { self[TraceKey.self] }
        set { self[TraceKey.self] = newValue }
    }

    /// The caller's `tracestate`, unchanged.
    var traceState: String? {
        get { self[TraceStateKey.self] }
        set { self[TraceStateKey.self] = newValue }
    }

    /// The context of the task that processes a request.
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

extension HTTPReply {
    /// A reply whose response is computed in a task, with the request's id and trace in the task's context.
    static func later(
        for request: borrowing HTTPRequest, _ respond: @escaping @Sendable () async -> HTTPResponse
    ) -> HTTPReply {
        let context = ServiceContext(request)
        return .later { await ServiceContext.withValue(context) { await respond() } }
    }
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
