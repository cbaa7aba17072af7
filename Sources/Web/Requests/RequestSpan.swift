internal import HTTP
internal import Telemetry
internal import Tracing

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
        if let id = context.requestID { attributes["gifreel.request_id"] = id }
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
