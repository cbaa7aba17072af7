internal import Fetch
package import Media
package import Sandbox
package import Store
internal import SystemIO

/// Converts a source into a rendition in a worker process. The output is a file of the cache or, if the disk is full, a file in
/// memory.
package struct Converter: Sendable {
    /// A finished conversion.
    package struct Conversion: Sendable {
        let file: StagedFile
        var report: WorkerReport
    }

    private let cache: Cache
    private let pool: WorkerPool
    private let limits: MediaLimits
    private let allowance: WorkerAllowance
    private let meter: WorkMeter
    private let onWork: OnWork

    /// Receives the CPU time of a conversion, however it ended, and the host of its source, which an upload does not have.
    package typealias OnWork = @Sendable (_ cpu: Duration, _ host: String?) -> Void

    /// - Parameter onWork: Called in the task of the conversion.
    package init(
        cache: Cache, pool: WorkerPool, limits: MediaLimits, allowance: WorkerAllowance, meter: WorkMeter,
        onWork: @escaping OnWork
    ) {
        self.cache = cache
        self.pool = pool
        self.limits = limits
        self.allowance = allowance
        self.meter = meter
        self.onWork = onWork
    }

    /// Runs a worker. If writing to the disk fails, runs it once more with a file in memory.
    package func convert(
        _ source: SourceFile, to rendition: Rendition, _ flight: Flight
    ) async throws(RenditionError) -> Conversion {
        guard let output = rendition.format.output else {
            throw .invalidOption(name: "format", reason: "cannot be produced by a conversion")
        }
        let job = WorkerJob(
            transcoder: Transcoder(output: output, options: rendition.options, limits: limits),
            allowance: allowance.times(rendition.cost, memory: rendition.memory))
        flight.markQueued()
        flight.progress.waits { [pool, turn = flight.turn] in pool.position(of: turn) }
        let file = try await translating(
            awaiting: try await cache.stage(expecting: Int64(source.count)), to: RenditionError.init)
        switch try await run(job, source, into: file, flight) {
        case .finished(let report): return try await complete(Conversion(file: file, report: report), source, rendition)
        case .diskFailed(let error):
            let memory = try translating(try cache.stageInMemory(because: UnstoredReason(error)), to: RenditionError.init)
            guard case .finished(let report) = try await run(job, source, into: memory, flight) else {
                throw .overloaded(cause: error.description)
            }
            return try await complete(Conversion(file: memory, report: report), source, rendition)
        }
    }

    /// Replaces the worker's binary output by a document if the output is facts. Other outputs are stored as written.
    private func complete(
        _ conversion: Conversion, _ source: SourceFile, _ rendition: Rendition
    ) async throws(RenditionError) -> Conversion {
        guard rendition.format.output == .facts else { return conversion }
        var conversion = conversion
        let (result, digest, count, file) = (
            conversion.report.result, source.digest, source.count, conversion.file.descriptor
        )
        conversion.report.result.bytes = try await cache.onThread { () throws(RenditionError) in
            try FactsFile.write(result, of: digest, bytes: count, with: rendition.options.facts, to: file)
        }
        return conversion
    }

    private enum Outcome {
        case finished(WorkerReport)
        case diskFailed(SystemError)
    }

    private func run(
        _ job: WorkerJob, _ source: SourceFile, into file: StagedFile, _ flight: Flight
    ) async throws(RenditionError) -> Outcome {
        let before = flight.turn.cpu
        defer { onWork(flight.turn.cpu - before, source.origin?.url.host) }
        do throws(SandboxError) {
            let report = try await pool.run(job, turn: flight.turn, input: source.bytes, output: file.descriptor)
            meter.converted(report, to: job.transcoder.output, sourceBytes: source.count)
            return .finished(report)
        } catch {
            if let cause = error.fileSystemError, !file.isInMemory { return .diskFailed(cause) }
            if error == .cancelled { throw .cancelled }
            let failure = RenditionError.conversionFailed(error, allowance: job.allowance)
            meter.conversionFailed(error, failure)
            throw failure
        }
    }

}
