internal import HTTP

/// The fields that let scripts of other origins send every request and read every response, including errors (Fetch standard,
/// section 3.2: the CORS protocol).
///
/// They are encoded once. A response whose body is an ``HTTPResource`` has them in its prepared head; ``applied(to:)`` adds
/// them to all other responses.
struct CrossOrigin: Sendable {
    /// The fields of every response; empty if no origin is allowed.
    let fields: HTTPHeaders
    private let preflightFields: HTTPHeaders

    /// The fields that scripts may read in addition to the safelisted ones.
    private static let exposedFields =
        "Content-Location, Content-Disposition, ETag, Cache-Status, Server-Timing, Location, Retry-After, Accept-Ranges, Content-Range, "
        + "X-Request-Id"

    /// - Parameter origin: The value of `Access-Control-Allow-Origin`; nil allows no origin.
    init(allowing origin: String?) {
        guard let origin else {
            fields = HTTPHeaders()
            preflightFields = HTTPHeaders()
            return
        }
        fields = [
            "Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": Self.exposedFields,
            // Lets scripts read sizes, times and Server-Timing of images and videos (Resource Timing).
            "Timing-Allow-Origin": origin,
        ]
        preflightFields = [
            "Access-Control-Allow-Origin": origin,
            // All methods, including those that the route refuses, so that the script can read the 405 response.
            "Access-Control-Allow-Methods": "GET, HEAD, POST, DELETE, PURGE, OPTIONS",
            // The wildcard does not cover Authorization.
            "Access-Control-Allow-Headers": "*, Authorization", "Access-Control-Max-Age": "86400",
        ]
    }

    func preflight(allow methods: [HTTPMethod]) -> HTTPResponse {
        var response = HTTPResponse.options(allow: methods)
        response.headers.append(preflightFields)
        return response
    }

    func applied(to response: HTTPResponse) -> HTTPResponse {
        if case .resource = response.body { return response }
        var response = response
        response.headers.append(fields)
        return response
    }

    /// Returns the reply with the fields in its response, even if that is computed later.
    func applied(to reply: HTTPReply) -> HTTPReply {
        if fields.isEmpty { return reply }
        return switch reply {
        case .now(let response): .now(applied(to: response))
        case .later(let work): .later { applied(to: await work()) }
        case .receive(let sink): .receive(CrossOriginSink(sink, self))
        }
    }
}

/// A body sink whose responses have the fields of ``CrossOrigin``.
private final class CrossOriginSink: HTTPBodySink {
    private let sink: any HTTPBodySink
    private let crossOrigin: CrossOrigin

    init(_ sink: any HTTPBodySink, _ crossOrigin: CrossOrigin) {
        self.sink = sink
        self.crossOrigin = crossOrigin
    }

    var limit: Int { sink.limit }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
        do {
            try sink.write(bytes)
        } catch let refusal as HTTPBodyRefusal {
            throw HTTPBodyRefusal(crossOrigin.applied(to: refusal.response))
        }
    }

    func finish() -> HTTPReply { crossOrigin.applied(to: sink.finish()) }

    func abort() { sink.abort() }
}
