internal import Synchronization
package import SystemIO

/// Fetches GIFs from the web.
///
/// One thread of its own drives all transfers; callers only wait. Every connection, those of redirects too, is checked
/// against the allowed sources, ports and addresses at the moment it is made.
package final class Fetcher: Sendable {
    private let settings: FetchSettings
    private let metrics = FetchMetrics()
    private let loop: TransferLoop
    private let lastID = Atomic<UInt64>(0)

    /// Starts the thread.
    ///
    /// - Throws: ``FetcherSetupError`` where a setting cannot work or there is no thread or memory left.
    package init(configuration: FetchConfiguration = FetchConfiguration()) throws(FetcherSetupError) {
        do throws(FetchConfigurationError) {
            try configuration.validate()
        } catch {
            throw .configuration(error)
        }
        guard CurlLibrary.prepare() else { throw .exhausted(.exhausted(cause: "curl_global_init")) }
        settings = FetchSettings(configuration)
        do throws(FetchError) {
            loop = try TransferLoop(settings: settings, metrics: metrics)
        } catch {
            throw .exhausted(error)
        }
    }

    deinit {
        loop.stop()
    }

    /// Fetches a source.
    ///
    /// The fetch ends at once when the task is cancelled.
    ///
    /// - Parameters:
    ///   - url: What to fetch.
    ///   - validators: From an earlier fetch: the origin may then answer that nothing has changed.
    ///   - fields: Header fields to send along, as `Name: value`.
    /// - Returns: The source, or that it has not changed; the latter only where `validators` were given.
    package func fetch(
        _ url: SourceURL, validators: SourceValidators? = nil, fields: [String] = []
    ) async throws(FetchError) -> FetchOutcome {
        metrics.countStart()
        do throws(FetchError) {
            try settings.check(url)
        } catch {
            metrics.countFinish(.failure(error))
            throw error
        }
        let id = lastID.add(1, ordering: .relaxed).newValue
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                loop.submit(
                    FetchRequest(
                        id: id, url: url, validators: validators ?? SourceValidators(), fields: fields, submitted: .now,
                        continuation: continuation)
                )
                // A cancellation that came before the submission found nothing to cancel.
                if Task.isCancelled { loop.cancel(id) }
            }
        } onCancel: {
            loop.cancel(id)
        }
        return try result.get()
    }

    /// Whether `url` may be fetched as far as its text tells; the addresses behind its name are seen only when connecting.
    package func check(_ url: SourceURL) throws(FetchError) {
        try settings.check(url)
    }

    /// Says where this process listens: nothing is fetched from there, whatever else is allowed.
    ///
    /// - Parameter endpoints: Addresses and ports. `0.0.0.0` stands for all of the machine's, `::` too.
    package func avoid(_ endpoints: [(address: IPAddress, port: Int)]) {
        settings.own.set(endpoints)
    }

    /// What has been done so far.
    package func counters() -> FetchCounters {
        metrics.snapshot()
    }

    /// Ends all fetches with ``FetchError/closed`` and stops the thread; it waits for that, which takes milliseconds.
    package func shutdown() {
        loop.stop()
    }
}
