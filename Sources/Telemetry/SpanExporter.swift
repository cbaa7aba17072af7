internal import Foundation
package import HTTPClient
package import Logging
internal import Synchronization
internal import SystemIO
internal import Tracing

/// The export of ended spans to a collector (OTLP over HTTP, in JSON), in batches and one request at a time.
///
/// Never blocks callers: if a slow collector fills the queue, further spans are dropped and counted. Thread-safe. Lives as long
/// as the process.
package final class SpanExporter: Sendable {
    /// Returns the limits of the delivery.
    ///
    /// - Parameter items: The maximum number of waiting spans.
    package static func limits(items: Int) -> DeliveryLimits {
        var limits = DeliveryLimits(items: items, attempts: 5, backoff: Backoff(first: .seconds(1), longest: .seconds(30)))
        limits.batch = 512
        limits.interval = .seconds(1)
        return limits
    }

    /// Makes one attempt to send a document, with its own timeout.
    package typealias Send = @Sendable (_ document: String) async -> DeliveryResult

    private let queue: DeliveryQueue<SpanRecord>
    private let meter: LabelledCounter

    /// The values of the counter's label.
    package static let results = ["exported", "failed", "dropped"]

    /// - Parameter meter: Counts spans by their result.
    package init(
        _ resource: TraceResource, limits: DeliveryLimits, meter: LabelledCounter, logger: Logger,
        send: @escaping Send
    ) {
        self.meter = meter
        let log = ExportLog(logger)
        queue = DeliveryQueue(limits) {
            await send(TraceDocument($0, of: resource).text)
        } report: { spans, event in
            switch event {
            case .delivered: meter.increment("exported", by: spans.count)
            case .repeated: break
            case .failed, .stopped: meter.increment("failed", by: spans.count)
            }
            log.note(event)
        }
    }

    /// The number of spans that wait or are being sent.
    package var waiting: Int { queue.count }

    /// Queues an ended span, or drops it if the queue is full.
    func record(_ span: SpanRecord) {
        if !queue.add(span, to: "collector") { meter.increment("dropped") }
    }

    /// Drops further spans, sends the waiting spans, and gives up the rest after the limit.
    package func stop(within limit: Duration) async {
        await queue.stop(within: limit)
    }
}

/// Logs when requests to the collector begin to fail, and when they succeed again.
private final class ExportLog: Sendable {
    private let logger: Logger
    private let isFailing = Mutex(false)

    init(_ logger: Logger) {
        self.logger = logger
    }

    func note(_ event: DeliveryEvent) {
        let failure: String? =
            switch event {
            case .delivered: nil
            case .repeated(let cause), .failed(let cause): cause
            case .stopped: "the server stops"
            }
        let hasChanged = isFailing.withLock { isFailing in
            defer { isFailing = failure != nil }
            return isFailing != (failure != nil)
        }
        guard hasChanged else { return }
        if let failure {
            logger.warning("traces cannot be exported", metadata: ["cause": "\(failure)"])
        } else {
            logger.notice("traces are exported again")
        }
    }
}

/// The properties that all spans of a process share: OpenTelemetry's resource and instrumentation scope.
package struct TraceResource: Sendable {
    fileprivate let attributes: SpanAttributes
    fileprivate let scope: String
    fileprivate let version: String

    /// - Parameters:
    ///   - service: `service.name`, and the name of the scope.
    ///   - version: `service.version`.
    ///   - node: The name of this node, as `service.instance.id` and `host.name`.
    package init(service: String, version: String, node: String) {
        attributes = [
            "service.name": .string(service), "service.version": .string(version), "service.instance.id": .string(node),
            "host.name": .string(node),
        ]
        scope = service
        self.version = version
    }
}

/// The body of a request to `/v1/traces`: `ExportTraceServiceRequest` of OTLP 1, in its JSON encoding.
///
/// In this encoding, IDs are hexadecimal, 64-bit integers are strings, and enumerations are numbers.
struct TraceDocument: Encodable {
    private let resourceSpans: [ResourceSpans]

    init(_ spans: [SpanRecord], of resource: TraceResource) {
        resourceSpans = [
            ResourceSpans(
                resource: Resource(attributes: KeyValue.list(resource.attributes)),
                scopeSpans: [
                    ScopeSpans(
                        scope: Scope(name: resource.scope, version: resource.version), spans: spans.map(SpanObject.init))
                ])
        ]
    }

    /// The text of the document. Keys are sorted, so that equal spans produce equal texts.
    var text: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
        // Strings, numbers and arrays of them can always be encoded.
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
    }

    private struct ResourceSpans: Encodable {
        let resource: Resource
        let scopeSpans: [ScopeSpans]
    }

    private struct Resource: Encodable {
        let attributes: [KeyValue]
    }

    private struct ScopeSpans: Encodable {
        let scope: Scope
        let spans: [SpanObject]
    }

    private struct Scope: Encodable {
        let name: String
        let version: String
    }
}

/// A `Span` of OTLP. A missing member has its default value: an empty list, 0, or none.
private struct SpanObject: Encodable {
    private let traceId: String
    private let spanId: String
    private let parentSpanId: String?
    private let traceState: String?
    private let name: String
    private let kind: Int
    private let startTimeUnixNano: String
    private let endTimeUnixNano: String
    private let attributes: [KeyValue]?
    private let events: [Event]?
    private let droppedEventsCount: Int?
    private let status: Status?

    private struct Event: Encodable {
        let timeUnixNano: String
        let name: String
        let attributes: [KeyValue]
    }

    private struct Status: Encodable {
        let code: Int
        let message: String?
    }

    init(_ span: SpanRecord) {
        traceId = span.position.traceID
        spanId = span.position.spanID
        parentSpanId = span.parentSpanID
        traceState = span.traceState
        name = span.name
        kind =
            switch span.kind {
            case .internal: 1
            case .server: 2
            case .client: 3
            case .producer: 4
            case .consumer: 5
            }
        startTimeUnixNano = "\(span.start)"
        endTimeUnixNano = "\(span.end)"
        attributes = span.attributes.isEmpty ? nil : KeyValue.list(span.attributes)
        let events = span.events.map {
            Event(timeUnixNano: "\($0.nanosecondsSinceEpoch)", name: $0.name, attributes: KeyValue.list($0.attributes))
        }
        self.events = events.isEmpty ? nil : events
        droppedEventsCount = span.droppedEvents == 0 ? nil : span.droppedEvents
        status = span.status.map { Status(code: $0.code == .ok ? 1 : 2, message: $0.message) }
    }
}

private struct KeyValue: Encodable {
    /// The maximum length of a text in bytes, so that a span stays small.
    private static let maxTextLength = 512

    let key: String
    let value: AnyValue

    static func list(_ attributes: SpanAttributes) -> [KeyValue] {
        var list: [KeyValue] = []
        attributes.forEach { key, attribute in
            if let value = value(of: attribute) { list.append(KeyValue(key: key, value: value)) }
        }
        return list.sorted { $0.key < $1.key }
    }

    private static func value(of attribute: SpanAttribute) -> AnyValue? {
        switch attribute {
        case .string(let text): .text(cut(text))
        case .stringConvertible(let value): .text(cut("\(value)"))
        case .int32(let number): .whole(Int64(number))
        case .int64(let number): .whole(number)
        case .double(let number): .number(number)
        case .bool(let flag): .flag(flag)
        // This program sets no arrays.
        default: nil
        }
    }

    private static func cut(_ text: String) -> String {
        text.utf8.count <= maxTextLength ? text : String(decoding: text.utf8.prefix(maxTextLength), as: UTF8.self)
    }
}

/// An `AnyValue` of OTLP: an object with one member, whose name is the type.
private enum AnyValue: Encodable {
    case text(String)
    case whole(Int64)
    case number(Double)
    case flag(Bool)

    private enum Name: String, CodingKey {
        case stringValue, intValue, doubleValue, boolValue
    }

    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Name.self)
        switch self {
        case .text(let text): try object.encode(text, forKey: .stringValue)
        case .whole(let number): try object.encode("\(number)", forKey: .intValue)
        case .number(let number): try object.encode(number, forKey: .doubleValue)
        case .flag(let flag): try object.encode(flag, forKey: .boolValue)
        }
    }
}
