internal import Tracing

/// Runs a step within a span of the request's trace. If the request is not traced, only the step runs.
///
/// - Parameter step: Receives the span, and may add attributes to it.
/// - Throws: The error of the step, which the span records.
func inSpan<Value: Sendable, Failure: Error>(
    _ name: String, ofKind kind: SpanKind = .internal, _ step: (any Tracing.Span) async throws(Failure) -> Value
) async throws(Failure) -> Value {
    let span = InstrumentationSystem.tracer.startSpan(name, ofKind: kind)
    guard span.isRecording else { return try await step(span) }
    let result = await ServiceContext.withValue(span.context) { () async -> Result<Value, Failure> in
        do throws(Failure) {
            return .success(try await step(span))
        } catch {
            return .failure(error)
        }
    }
    if case .failure(let error) = result { span.fail(error) }
    span.end()
    return try result.get()
}

/// Records a step that has ended already.
///
/// - Parameters:
///   - start: The beginning of the step.
///   - duration: Nil for a step that ends now.
func recordSpan(
    _ name: String, from start: DefaultTracerClock.Timestamp, for duration: Duration? = nil, _ attributes: SpanAttributes = [:],
    error: (any Error)? = nil
) {
    let span = InstrumentationSystem.tracer.startSpan(name, at: start)
    guard span.isRecording else { return }
    span.attributes = attributes
    if let error { span.fail(error) }
    span.end(at: duration.map { start + $0 } ?? DefaultTracerClock.now)
}

extension Tracing.Span {
    fileprivate func fail(_ error: any Error) {
        recordError(error)
        setStatus(SpanStatus(code: .error))
    }
}

extension DefaultTracerClock.Timestamp {
    /// Returns the time after a duration. A negative duration counts as zero.
    static func + (start: Self, duration: Duration) -> Self {
        let nanoseconds = UInt64(max(0, duration / .nanoseconds(1)))
        return Self(nanosecondsSinceEpoch: start.nanosecondsSinceEpoch + nanoseconds)
    }
}
