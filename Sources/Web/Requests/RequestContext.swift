internal import HTTP
package import Logging
internal import SystemIO
internal import Telemetry
internal import Tracing

// The id and the trace of a request, carried by the tasks that process it (`ServiceContext.current`).

private enum RequestOriginKey: ServiceContextKey {
    typealias Value = UsageBoard.Origin
    static let nameOverride: String? = "request-origin"
}

extension ServiceContext {
    /// The id, the client and the target of the request.
    var origin: UsageBoard.Origin? {
        get { self[RequestOriginKey.self] }
        set { self[RequestOriginKey.self] = newValue }
    }

    /// Creates the context with the request's id and its caller's trace. Only a trusted proxy may decide that a trace is
    /// recorded: otherwise any client could have all of its requests recorded.
    init(_ request: borrowing HTTPRequest, _ tracer: OTLPTracer) {
        self = .topLevel
        origin = UsageBoard.Origin(id: request.id, client: request.clientAddress?.description, target: request.target)
        guard let parent = request.header("traceparent") else { return }
        setTrace(parent: parent, state: Self.traceState(of: request))
        if !request.isFromTrustedProxy { trace = trace?.sampled(tracer.isNextSampled) }
    }

    /// Returns the `tracestate` fields as one list (W3C Trace Context section 3.3.1.1); nil without any.
    private static func traceState(of request: borrowing HTTPRequest) -> String? {
        var state: [UInt8] = []
        request.forEachValue(of: "tracestate") { value in
            // Keeps one byte beyond the limit, so that a list that exceeds it can be recognized.
            let rest = maxTraceStateLength + 1 - state.count
            guard rest > 0, !value.isEmpty else { return }
            state += (state.isEmpty ? [] : [UInt8(ascii: ",")]) + value.prefix(rest)
        }
        return state.isEmpty ? nil : String(decoding: state, as: UTF8.self)
    }
}

extension UsageBoard {
    /// Adds the processor time of a conversion to the sums of the request that has caused it; nothing for lists and background
    /// renditions, which run outside of a request.
    ///
    /// - Parameter host: The host of the source; nil for an upload.
    package func worked(_ cpu: Duration, host: String?) {
        if let origin = ServiceContext.current?.origin { converted(cpu, host: host, for: origin) }
    }
}

extension Logger.MetadataProvider {
    /// Adds the request's id, client and trace to each log line of its tasks.
    package static let request = Logger.MetadataProvider {
        var metadata: Logger.Metadata = [:]
        if let id = ServiceContext.current?.origin?.id { metadata["request_id"] = "\(id)" }
        if let client = ServiceContext.current?.origin?.client { metadata["client"] = "\(client)" }
        if let trace = ServiceContext.current?.trace {
            metadata["trace_id"] = "\(trace.traceID)"
            metadata["span_id"] = "\(trace.spanID)"
        }
        return metadata
    }
}

/// The span of a request that a task answers. Responses from memory have none.
struct RequestSpan: Sendable {
    private let tracer: OTLPTracer
    private let span: OTLPSpan

    /// Starts the span of a request. It is recorded if the request is sampled; see ``OTLPTracer``.
    init(of request: borrowing HTTPRequest, _ tracer: OTLPTracer) {
        self.tracer = tracer
        let context = ServiceContext(request, tracer)
        span = tracer.startSpan("request", context: context, ofKind: .server)
        guard span.isRecording else { return }
        let method = request.method.description
        let route = Self.route(of: request.target)
        span.operationName = "\(method) \(route)"
        var attributes: SpanAttributes = ["http.request.method": .string(method), "http.route": .string(route)]
        if let id = context.origin?.id { attributes["gifreel.request_id"] = id }
        span.attributes = attributes
    }

    /// Computes the response with the request's id and trace in the context of the task. The steps of a miss record child
    /// spans, even if they continue after the response.
    func run(_ respond: @Sendable () async -> HTTPResponse) async -> HTTPResponse {
        let context = span.context
        guard span.isRecording else { return await ServiceContext.withValue(context) { await respond() } }
        let response = await withTracer(tracer) { await ServiceContext.withValue(context) { await respond() } }
        span.attributes["http.response.status_code"] = response.status
        if let use = response.headers["Cache-Status"] { span.attributes["gifreel.cache_status"] = use }
        if response.status >= 500 { span.setStatus(SpanStatus(code: .error)) }
        span.end()
        return response
    }

    /// Returns the route under its name in metrics: the first segment of the target, or one name for all mounts. The full
    /// target contains a signature and the address of its source, which are in the log.
    private static func route(of target: String) -> String {
        let segment = target[...].droppingBytes(1).before(UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: ","))
        return Route.reservedNames.contains(String(segment)) ? "/\(segment)" : "/{mount}"
    }
}

extension HTTPReply {
    /// A reply whose response is computed in a task, within a span.
    static func later(in span: RequestSpan, _ respond: @escaping @Sendable () async -> HTTPResponse) -> HTTPReply {
        .later { await span.run(respond) }
    }
}
