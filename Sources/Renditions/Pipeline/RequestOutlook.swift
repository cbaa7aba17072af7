internal import Fetch
package import Media
internal import Sandbox
internal import Store
internal import SystemIO

/// The expected outcome of a request for a rendition, for operators.
package struct RequestOutlook: Sendable {
    package enum Answer: Sendable, Equatable {
        /// It is stored and fresh.
        case hit
        /// It is stored, and is sent while its origin is asked.
        case stale
        /// It is stored, and its origin is asked first, because purges may have been missed.
        case unconfirmed
        /// It is stored, and its origin is asked first whether the source has changed.
        case expired
        /// An attempt has failed, and the next one is not due yet.
        case failure(RenditionError)
        /// Another request has caused the work already.
        case joined
        /// There is no capacity for another miss.
        case overloaded
        /// It is not stored, and its source is fetched before the answer.
        case miss
    }

    package let answer: Answer
    /// The failures of the source and of all its renditions, the latest first.
    package let failures: [RememberedFailure]
}

/// The result of an attempt whose rendition is not stored.
package struct RenditionTrial: Sendable {
    /// Bytes of the source.
    package let sourceBytes: Int
    package let sourceFormat: SourceFormat
    /// Nil for a rendition that needs no conversion.
    package let result: TranscodeResult?
    package let times: StageTimes
}

extension RenditionPipeline {
    /// Returns the outcome that a request would have now. Fetches and produces nothing.
    ///
    /// - Throws: ``RenditionError/overloaded(cause:)`` if too many lookups wait.
    package func outlook(of request: RenditionRequest) async throws(RenditionError) -> RequestOutlook {
        let failures = state.failures.list(of: request.source)
        let stored = try await translating(
            awaiting: try await cache.rendition(for: request.key, countsMiss: false), to: RenditionError.init)
        let failure = failures.first { $0.key == nil || $0.key == request.key }
        let answer: RequestOutlook.Answer
        switch stored.map({ ($0.isOfIncompleteSource, cache.freshness(of: $0)) }) {
        case (_, .fresh)?: answer = .hit
        case (false, .stale)?: answer = .stale
        case (false, .unconfirmed)?: answer = .unconfirmed
        default:
            answer =
                if let failure {
                    .failure(.remembered(failure.error, remaining: failure.remaining))
                } else if state.flights.isJoinable(FlightKey(request)) {
                    .joined
                } else if hasCapacity {
                    stored == nil ? .miss : .expired
                } else {
                    .overloaded
                }
        }
        return RequestOutlook(answer: answer, failures: failures)
    }

    /// Fetches and converts the source of a request now, whatever is stored or has failed before. Stores neither the rendition
    /// nor a failure.
    package func tryOut(_ request: RenditionRequest) async throws(RenditionError) -> RenditionTrial {
        let slot = try state.admission.admit(
            request.source.origin, bytes: misses.maxSourceBytes, cost: request.rendition.cost, urgency: request.urgency)
        defer { withExtendedLifetime(slot) {} }
        guard case .loaded(let loaded) = try await misses.loader.loadApart(request.source, slot) else {
            throw .overloaded(cause: "304 without validators")
        }
        let source = loaded.source
        slot.sourceArrived(bytes: source.count)
        try await misses.check(RenditionJob(request.rendition, of: loaded), Flight(), isTrial: true)
        var times = StageTimes(fetch: loaded.time)
        guard request.rendition.format.output != nil else {
            return RenditionTrial(sourceBytes: source.count, sourceFormat: source.format, result: nil, times: times)
        }
        let report = try await misses.producer.convert(source, request.rendition, Flight()).report
        (times.queue, times.transcode) = (report.queued, report.ran)
        times.cpu = .microseconds(report.cpuMicroseconds)
        return RenditionTrial(sourceBytes: source.count, sourceFormat: source.format, result: report.result, times: times)
    }
}
