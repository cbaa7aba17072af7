package import Cache
internal import Glibc
package import Media
package import Sandbox

/// Has a worker make a rendition of a GIF, into a file of the cache or, where the disk is full, in memory.
package struct Converter: Sendable {
    /// What a conversion gave.
    package struct Conversion: Sendable {
        var file: StagedFile
        var report: WorkerReport
    }

    let cache: Cache
    let pool: WorkerPool
    let limits: MediaLimits
    let allowance: WorkerJob.Allowance
    let meter: WorkMeter

    package init(cache: Cache, pool: WorkerPool, limits: MediaLimits, allowance: WorkerJob.Allowance, meter: WorkMeter) {
        self.cache = cache
        self.pool = pool
        self.limits = limits
        self.allowance = allowance
        self.meter = meter
    }

    /// Runs a worker. When the disk fills up under it, it runs once more with a file in memory.
    package func convert(_ source: Source, to rendition: Rendition, _ flight: Flight) async -> Result<
        Conversion, RenditionError
    > {
        guard let output = rendition.format.output else {
            return .failure(.invalidOption(name: "format", reason: "is not one that can be made"))
        }
        let job = WorkerJob(
            transcoder: Transcoder(output: output, options: rendition.options, limits: limits),
            allowance: allowance)
        flight.waitsForWorker()
        do throws(RenditionError) {
            let file = try stage { () throws(CacheError) in try cache.stage(expecting: Int64(source.count)) }
            if let report = try await run(job, source, into: file, flight) {
                return .success(try finish(Conversion(file: file, report: report), source, output))
            }
            let memory = try stage { () throws(CacheError) in try cache.stageInMemory() }
            guard let report = try await run(job, source, into: memory, flight) else { throw .overloaded(cause: nil) }
            return .success(try finish(Conversion(file: memory, report: report), source, output))
        } catch {
            return .failure(error)
        }
    }

    /// What a worker writes is what is stored, but for facts, whose numbers become a document here.
    private func finish(_ made: Conversion, _ source: Source, _ output: OutputFormat) throws(RenditionError) -> Conversion {
        guard output == .facts else { return made }
        var made = made
        made.report.result.bytes = try FactsFile.write(
            made.report.result, of: source.digest, bytes: source.count, to: made.file.descriptor)
        return made
    }

    /// Nil where the disk filled up.
    private func run(
        _ job: WorkerJob, _ source: Source, into file: StagedFile, _ flight: Flight
    ) async throws(RenditionError) -> WorkerReport? {
        do throws(SandboxError) {
            let report = try await pool.run(job, turn: flight.turn, input: source.bytes, output: file.descriptor)
            meter.converted(report, sourceBytes: source.count)
            return report
        } catch {
            if case .rejected(.failed(_, let code)) = error, code == -ENOSPC, !file.isInMemory { return nil }
            let failure = RenditionError.conversionFailed(error, allowance: allowance)
            meter.conversionFailed(error, failure)
            throw failure
        }
    }

    private func stage(_ make: () throws(CacheError) -> StagedFile) throws(RenditionError) -> StagedFile {
        do throws(CacheError) {
            return try make()
        } catch {
            throw RenditionError(error)
        }
    }
}
