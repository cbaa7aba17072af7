internal import Curl
internal import Synchronization
package import SystemIO

/// The reason why a fetcher could not be started.
package enum FetcherSetupError: Error, Equatable, Sendable, CustomStringConvertible {
    /// A setting cannot work.
    case configuration(FetchConfigurationError)
    /// The machine ran out of descriptors, memory or threads.
    case exhausted(FetchError)

    package var description: String {
        switch self {
        case .configuration(let error): error.description
        case .exhausted(let error): error.description
        }
    }
}

/// An HTTP client that fetches GIFs.
///
/// One dedicated thread drives all transfers; callers only wait. Every connection, also after a redirect, is checked against
/// the allowed sources, ports and addresses when it is opened.
package final class Fetcher: Sendable {
    private let context: FetchContext
    private let loop: CurlLoop<TransferDriver>
    private let lastID = Atomic<UInt64>(0)
    /// For files of this machine, whose disk may be slow.
    private let fileThreads = WorkThreads(count: 4, limit: 256, name: "fetch-files")

    /// Starts the thread.
    ///
    /// - Throws: ``FetcherSetupError`` if a setting cannot work or the machine has no thread or memory left.
    package init(configuration: FetchConfiguration = FetchConfiguration()) throws(FetcherSetupError) {
        do throws(FetchConfigurationError) {
            try configuration.validate()
        } catch {
            throw .configuration(error)
        }
        let context = FetchContext(configuration)
        self.context = context
        do throws(FetchError) {
            loop = try CurlLoop(name: "fetch", idleConnections: configuration.concurrency) { TransferDriver(context) }
        } catch {
            throw .exhausted(error)
        }
    }

    deinit {
        loop.stop()
        fileThreads.close()
    }

    /// Fetches a source. The fetch ends at once when the task is cancelled.
    ///
    /// - Parameters:
    ///   - url: The source.
    ///   - validators: From an earlier fetch; the origin may then answer that the source has not changed. They are not sent to the
    ///     targets of redirects.
    ///   - fields: Additional request header fields, as `Name: value`.
    ///   - arriving: Shows the bytes while they arrive. Belongs to this fetch alone; the caller records its end.
    /// - Returns: The source, or that it has not changed; the latter only if `validators` were given.
    package func fetch(
        _ url: SourceURL, validators: SourceValidators? = nil, fields: [String] = [],
        arriving: ArrivingSource = ArrivingSource()
    ) async throws(FetchError) -> FetchOutcome {
        let outcome = try await run(url, validators ?? SourceValidators(), fields, document: nil, arriving)
        // Only a document has no outcome.
        guard let outcome else { throw .failed(.protocolViolation(cause: "no outcome")) }
        return outcome
    }

    /// Sends a document with POST, under the same rules for URLs and addresses as a fetch. Redirects are not followed.
    ///
    /// - Parameter fields: Additional request header fields, as `Name: value`.
    /// - Throws: ``FetchError`` unless the receiver answers with a status from 200 to 299.
    package func post(_ document: [UInt8], to url: SourceURL, fields: [String]) async throws(FetchError) {
        _ = try await run(url, SourceValidators(), fields, document: document, ArrivingSource())
    }

    private func run(
        _ url: SourceURL, _ validators: SourceValidators, _ fields: [String], document: [UInt8]?,
        _ arriving: ArrivingSource
    ) async throws(FetchError) -> FetchOutcome? {
        try context.settings.check(url)
        if let file = url.file { return try await read(file, validators, arriving) }
        let id = lastID.add(1, ordering: .relaxed).newValue
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let request = FetchRequest(
                    id: id, url: url, validators: validators, fields: fields, document: document, arriving: arriving,
                    submitted: .now, continuation: continuation)
                let isOpen = loop.post(.submit(request))
                if !isOpen { continuation.resume(returning: .failure(.closed)) }
                // The cancellation handler may have run before the submission and cancelled nothing.
                if isOpen, Task.isCancelled { loop.post(.cancel(id)) }
            }
        } onCancel: {
            loop.post(.cancel(id))
        }
        return try result.get()
    }

    private func read(
        _ place: SourceURL.FilePlace, _ validators: SourceValidators, _ arriving: ArrivingSource
    ) async throws(FetchError) -> FetchOutcome {
        let reader = FileReader(place, limit: context.settings.configuration.maxBytes)
        let result = await fileThreads.run { [context] in
            Result { () throws(FetchError) in
                try reader.read(validators, arriving) { context.metrics.count(file: $0) }
            }
        }
        guard let result else { throw .busy }
        return try result.get()
    }

    /// Replaces the configuration without ending a transfer, closing a connection or resetting a counter.
    ///
    /// The new configuration applies to every request that starts after this call: to new and queued fetches and to the next
    /// redirect of a fetch in progress, which are checked again and refused if it forbids them. A request in progress keeps the
    /// settings it started with. Queued fetches stay queued if the queue becomes shorter.
    ///
    /// Any thread.
    ///
    /// - Throws: ``FetchConfigurationError`` if a setting cannot work; the previous configuration then stays in effect.
    package func reconfigure(_ configuration: FetchConfiguration) throws(FetchConfigurationError) {
        try configuration.validate()
        context.replaceSettings(configuration)
        loop.post(.applySettings)
    }

    /// Sets where this process listens. Nothing is fetched from there, whatever the settings allow.
    ///
    /// - Parameter endpoints: Addresses and ports. `0.0.0.0` and `::` mean all addresses of the machine.
    package func avoid(_ endpoints: [(address: IPAddress, port: Int)]) {
        context.ownEndpoints.set(endpoints)
    }

    /// A snapshot of the counters.
    package func counters() -> FetchCounters {
        context.metrics.snapshot()
    }

    /// Ends all fetches with ``FetchError/closed``, stops the thread and waits for it, which takes milliseconds.
    package func shutdown() {
        loop.stop()
        fileThreads.close()
    }
}
