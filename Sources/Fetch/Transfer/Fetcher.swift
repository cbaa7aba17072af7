internal import HTTPClient
internal import Synchronization
package import SystemIO

/// An HTTP client that fetches GIFs.
///
/// One dedicated thread drives all transfers, and other threads decode bodies with a `Content-Encoding`; callers only wait.
/// Every connection, even after a redirect, is checked against the allowed sources, ports and addresses when it is opened.
package final class Fetcher: Sendable {
    private let context: FetchContext
    private let client: HTTPClient
    /// The threads that read files, by the directory of the mount, so that a file system that does not answer delays only the
    /// files on it. A directory has threads from its first file on; nil after ``shutdown()``.
    private let fileThreads = Mutex<[String: any BlockingWork]?>([:])
    private let makeFileThreads: @Sendable () -> any BlockingWork
    /// The polling interval for files that have to wait, which is that of the HTTP client.
    private static let gateInterval = Duration.milliseconds(20)

    /// Starts the thread.
    ///
    /// - Throws: ``FetchError`` if the machine has no descriptor, thread or memory left.
    package convenience init(configuration: FetchConfiguration = FetchConfiguration()) throws(FetchError) {
        try self.init(configuration) { WorkThreads(count: 4, limit: 256, name: "fetch-files") }
    }

    init(
        _ configuration: FetchConfiguration, makeFileThreads: @escaping @Sendable () -> any BlockingWork
    ) throws(FetchError) {
        let context = FetchContext(configuration)
        (self.context, self.makeFileThreads) = (context, makeFileThreads)
        client = try translating(try HTTPClient(name: "fetch", limits: context.settings.limits)) { (error: HTTPError) in
            FetchError(error, configuration, refusal: nil)
        }
    }

    deinit { shutdown() }

    /// See ``FetchContext/decodingThreads``.
    var decodingThreads: WorkThreads { context.decodingThreads }

    /// Fetches a source. When the task is cancelled, the fetch ends at once, or after the lookup of the host's name.
    ///
    /// - Parameters:
    ///   - url: The source.
    ///   - validators: The validators from an earlier fetch, with which the origin may answer that the source has not changed.
    ///     They are not sent to the targets of redirects.
    ///   - fields: Additional request header fields, as `Name: value`.
    ///   - arriving: Receives the bytes as they arrive. Belongs to this fetch alone; the caller records its end.
    /// - Returns: The source, or ``FetchOutcome/notModified(_:)``; the latter only if `validators` were given.
    package func fetch(
        _ url: SourceURL, validators: SourceValidators? = nil, fields: [String] = [],
        arriving: ArrivingSource = ArrivingSource()
    ) async throws(FetchError) -> FetchOutcome {
        let settings = context.settings
        if let refusal = settings.rules.refusal(of: url) { throw .notAllowed(refusal) }
        let validators = validators ?? SourceValidators()
        let address: WebAddress
        switch url {
        case .file(let file): return try await read(file, validators, arriving)
        case .object(let object):
            await settings.configuration.buckets[object.bucket]?.signer?.prepare(within: settings.configuration.timeout)
            address = object.address
        case .web(let web): address = web
        }
        let order = FetchOrder(
            source: url, address: address, validators: validators, fields: fields, arriving: arriving)
        let received = try await client.run { [context] in FetchCall(order, context, $0) }.get()
        switch received {
        case .outcome(let outcome): return outcome
        case .coded(let body, let source): return .fetched(source(try await body.finish()))
        }
    }

    /// Sends a document with POST, under the same rules for URLs and addresses as a fetch. Redirects are not followed.
    ///
    /// - Parameter fields: Additional request header fields, as `Name: value`.
    /// - Throws: ``FetchError`` unless the receiver answers with a status from 200 to 299.
    package func post(_ document: [UInt8], to url: SourceURL, fields: [String]) async throws(FetchError) {
        guard case .web(let address) = url else { throw .notAllowed(.pattern) }
        try await client.run { [context] in DeliveryCall(document, to: address, fields: fields, context, $0) }.get()
    }

    private func read(
        _ place: FileAddress, _ validators: SourceValidators, _ arriving: ArrivingSource
    ) async throws(FetchError) -> FetchOutcome {
        let configuration = context.settings.configuration
        try await waitForTurn(arriving, within: configuration.timeout)
        let reader = FileReader(place: place, limit: configuration.maxBytes)
        let reading = FileReading()
        let isQueued = submit(for: place.directory) { [context, weak reading] in
            // The caller may have left while the work was in the queue.
            guard let reading else { return }
            let outcome = Result { () throws(FetchError) in
                try reader.read(validators, arriving) { count in context.counters.update { $0.fileBytes += count } }
            }
            reading.outcome.withLock { $0 = outcome }
            reading.ended.signal()
        }
        guard isQueued else { throw .busy }
        await reading.ended.wait(for: configuration.timeout)
        if let outcome = reading.outcome.withLock({ $0 }) { return try outcome.get() }
        throw Task.isCancelled ? .cancelled : .timeout(.total, limit: configuration.timeout)
    }

    /// Waits until the fetch may begin, as the HTTP client waits for memory and connections.
    private func waitForTurn(_ arriving: ArrivingSource, within limit: Duration) async throws(FetchError) {
        let deadline = ContinuousClock.now + limit
        while !arriving.mayBegin() {
            guard ContinuousClock.now < deadline else { throw .busy }
            do {
                try await Task.sleep(for: Self.gateInterval)
            } catch {
                throw .cancelled
            }
        }
    }

    /// Queues work for the threads of a directory. Returns false if their queue is full.
    private func submit(for directory: String, _ work: @escaping BlockingWork.Work) -> Bool {
        fileThreads.withLock { all in
            guard let threads = all.map({ $0[directory] ?? makeFileThreads() }) else { return false }
            let isQueued = threads.submit(work)
            // Threads that could not be started are forgotten.
            if isQueued { all?[directory] = threads }
            return isQueued
        }
    }

    /// Ends threads without waiting for them: a read from a network file system may block until its server answers.
    private static func end(_ threads: some Sequence<any BlockingWork>) {
        for threads in threads { SystemThread.start(name: "fetch-end") { threads.close() }?.detach() }
    }

    /// Replaces the configuration without ending a transfer, closing a connection or resetting a counter.
    ///
    /// The new configuration applies to every request that starts after this call: to new and queued fetches and to the next
    /// redirect of a fetch in progress. These are checked again, and refused if the new configuration forbids them. A request
    /// in progress keeps the settings it started with. Queued fetches stay queued even if the queue becomes shorter.
    ///
    /// Thread-safe.
    package func reconfigure(_ configuration: FetchConfiguration) {
        context.replaceSettings(configuration)
        client.setLimits(context.settings.limits)
        let directories = configuration.mounts.compactMap {
            if case .file(let folder) = $0.root { folder.directory } else { nil }
        }
        let unused = fileThreads.withLock { all in
            let unused = all?.filter { !directories.contains($0.key) } ?? [:]
            for directory in unused.keys { all?[directory] = nil }
            return unused
        }
        Self.end(unused.values)
    }

    /// Sets the endpoints on which this process listens. Nothing is fetched from them, whatever the settings allow.
    ///
    /// - Parameter endpoints: Addresses and ports. `0.0.0.0` and `::` mean all addresses of the machine.
    package func avoid(_ endpoints: [(address: IPAddress, port: Int)]) {
        context.ownEndpoints.set(endpoints)
    }

    /// Returns a snapshot of the counters.
    package func counters() -> FetchCounters {
        var counters = context.counters.snapshot
        counters.client = client.counters
        return counters
    }

    /// Ends all fetches with ``FetchError/closed``, stops the thread and waits for it, which takes milliseconds.
    package func shutdown() {
        client.stop()
        if let threads = fileThreads.withLock({ $0.take() }) { Self.end(threads.values) }
        context.decodingThreads.close()
    }
}

/// The reading of a file. Its caller may leave first, because a network file system may never answer. Only the caller holds it
/// until a thread begins.
private final class FileReading: Sendable {
    let outcome = Mutex<Result<FetchOutcome, FetchError>?>(nil)
    let ended = AsyncSignal()
}
