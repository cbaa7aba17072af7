import Foundation
import SystemIO
import TestSupport
import Testing
import Tracing

@testable import Telemetry

@Suite("The tracer honours the caller's trace and its sampling") struct OTLPTracerTests {
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let caller = "00f067aa0ba902b7"

    private func context(flags: String) throws -> ServiceContext {
        var context = ServiceContext.topLevel
        let parent = try #require(TraceParent("00-\(Self.trace)-\(Self.caller)-\(flags)"))
        context.trace = parent
        return context
    }

    @Test func aSampledTraceIsContinuedWithTheCallerAsParent() async throws {
        try await Collector.run { collector, exporter in
            let tracer = OTLPTracer(exporter, share: 0)
            let caller = try context(flags: "01")
            let request = tracer.startSpan("request", context: caller, ofKind: .server)
            let step = tracer.startSpan("fetch", context: request.context, ofKind: .client)
            #expect(request.isRecording && step.isRecording)
            step.end()
            request.end()
            #expect(!request.isRecording)
            try await waitUntil("two spans") { try collector.spans().count == 2 }
            let spans = try collector.spans()
            let first = try #require(spans.first { $0.name == "request" })
            let second = try #require(spans.first { $0.name == "fetch" })
            #expect(first.traceId == Self.trace && second.traceId == Self.trace)
            #expect(first.parentSpanId == Self.caller && second.parentSpanId == first.spanId && second.spanId != first.spanId)
            #expect(first.kind == 2 && second.kind == 3)
        }
    }

    @Test func aTraceThatIsNotSampledIsPassedOnAndNotRecorded() async throws {
        try await Collector.run { _, exporter in
            let tracer = OTLPTracer(exporter, share: 1)
            let caller = try context(flags: "00")
            let request = tracer.startSpan("request", context: caller, ofKind: .server)
            let step = tracer.startSpan("fetch", context: request.context)
            request.end()
            step.end()
            #expect(!request.isRecording && !step.isRecording && exporter.waiting == 0)
            let trace = try #require(request.context.trace)
            #expect(trace.traceID == Self.trace && trace.spanID != Self.caller && !trace.isSampled)
            // The origin's caller is the request, not a step that no collector knows.
            #expect(step.context.trace == trace)
        }
    }

    @Test func onlyARequestBeginsATraceAndOnlyForItsShare() async throws {
        try await Collector.run { _, exporter in
            #expect(OTLPTracer(exporter, share: 1).startSpan("request", context: .topLevel, ofKind: .server).isRecording)
            #expect(!OTLPTracer(exporter, share: 1).startSpan("fetch", context: .topLevel).isRecording)
            let none = OTLPTracer(exporter, share: 0).startSpan("request", context: .topLevel, ofKind: .server)
            #expect(!none.isRecording && none.context.trace == nil)
            let half = OTLPTracer(exporter, share: 0.5)
            let traced = (0..<1000).count { _ in half.startSpan("request", context: .topLevel, ofKind: .server).isRecording }
            #expect((300...700).contains(traced))
        }
    }

    @Test func withoutAnExporterACallersTraceIsContinuedAndNoneIsBegun() throws {
        let tracer = OTLPTracer(nil, share: 1)
        let caller = try context(flags: "01")
        let continued = tracer.startSpan("request", context: caller, ofKind: .server)
        #expect(!continued.isRecording && continued.context.trace?.traceID == Self.trace)
        #expect(continued.context.trace?.spanID != Self.caller)
        #expect(tracer.startSpan("request", context: .topLevel, ofKind: .server).context.trace == nil)
    }

    @Test func aSpanEndsOnceAndNotBeforeItsStart() async throws {
        try await Collector.run { collector, exporter in
            let start = DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: 2_000_000_000)
            let span = OTLPTracer(exporter, share: 1).startSpan(
                "request", context: .topLevel, ofKind: .server, at: start)
            span.end(at: DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: 1_000_000_000))
            span.end()
            span.attributes["late"] = 1
            try await waitUntil("the span") { try !collector.spans().isEmpty }
            let spans = try collector.spans()
            #expect(spans.count == 1 && spans[0].startTimeUnixNano == "2000000000" && spans[0].endTimeUnixNano == "2000000000")
            #expect(!spans[0].hasAttributes)
        }
    }
}
