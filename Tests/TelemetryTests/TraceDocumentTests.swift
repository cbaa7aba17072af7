import Foundation
import Testing
import Tracing

@testable import Telemetry

/// The names and forms of OTLP 1 (opentelemetry-proto, trace.proto and “JSON Protobuf Encoding” of its specification).
@Suite("Spans are written as OTLP's JSON") struct TraceDocumentTests {
    private static let resource = TraceResource(service: "gifreel", version: "1.2.3", node: "node-1")

    private func record(_ kind: SpanKind = .server, parent: String? = nil) throws -> SpanRecord {
        let position = try #require(TraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
        var record = SpanRecord(
            name: "GET /mp4", position: position, parentSpanID: parent, traceState: nil, kind: kind,
            start: 1_700_000_000_123_456_789)
        record.end = 1_700_000_001_000_000_000
        return record
    }

    @Test func aSpanHasItsIdsInHexadecimalAndItsTimesAsTexts() throws {
        var span = try record(parent: "b7ad6b7169203331")
        span.attributes = ["http.response.status_code": 503, "http.route": "/mp4"]
        span.status = SpanStatus(code: .error, message: "busy")
        #expect(
            TraceDocument([span], of: Self.resource).text
                == #"{"resourceSpans":[{"resource":{"attributes":[{"key":"host.name","value":{"stringValue":"node-1"}},"#
                + #"{"key":"service.instance.id","value":{"stringValue":"node-1"}},"#
                + #"{"key":"service.name","value":{"stringValue":"gifreel"}},"#
                + #"{"key":"service.version","value":{"stringValue":"1.2.3"}}]},"#
                + #""scopeSpans":[{"scope":{"name":"gifreel","version":"1.2.3"},"spans":["#
                + #"{"attributes":[{"key":"http.response.status_code","value":{"intValue":"503"}},"#
                + #"{"key":"http.route","value":{"stringValue":"/mp4"}}],"#
                + #""endTimeUnixNano":"1700000001000000000","kind":2,"name":"GET /mp4","parentSpanId":"b7ad6b7169203331","#
                + #""spanId":"00f067aa0ba902b7","startTimeUnixNano":"1700000000123456789","#
                + #""status":{"code":2,"message":"busy"},"traceId":"4bf92f3577b34da6a3ce929d0e0e4736"}]}]}]}"#)
    }

    @Test(arguments: [
        (SpanKind.internal, 1), (.server, 2), (.client, 3), (.producer, 4), (.consumer, 5),
    ])
    func aKindIsANumber(_ kind: SpanKind, _ number: Int) throws {
        #expect(TraceDocument([try record(kind)], of: Self.resource).text.contains(#""kind":\#(number),"#))
    }

    @Test func attributesHaveTheMemberOfTheirType() throws {
        var span = try record()
        span.attributes = [
            "a": "text", "b": 7, "c": 0.5, "d": true, "e": .double(.infinity), "f": .stringConvertible(Int64(9)),
        ]
        let text = TraceDocument([span], of: Self.resource).text
        for expected in [
            #"{"key":"a","value":{"stringValue":"text"}}"#, #"{"key":"b","value":{"intValue":"7"}}"#,
            #"{"key":"c","value":{"doubleValue":0.5}}"#, #"{"key":"d","value":{"boolValue":true}}"#,
            #"{"key":"e","value":{"doubleValue":"Infinity"}}"#, #"{"key":"f","value":{"stringValue":"9"}}"#,
        ] {
            #expect(text.contains(expected), "\(expected) in \(text)")
        }
    }

    @Test func eventsAreBoundedAndLongTextsAreCut() throws {
        var span = try record()
        for number in 0..<20 { span.add(SpanEvent(name: "event \(number)")) }
        span.attributes = ["long": .string(String(repeating: "é", count: 1000))]
        let text = TraceDocument([span], of: Self.resource).text
        #expect(text.contains(#""droppedEventsCount":4"#))
        #expect(text.contains(#""name":"event 15""#) && !text.contains("event 16"))
        #expect(text.count { $0 == "é" } == 256)
    }
}
