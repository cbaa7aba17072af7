package import Fleet
package import Renditions

/// Processes the entries of a run.
package protocol PrewarmBackend: Sendable {
    /// Brings the entries into the cache, several at a time. Returns when all are finished or the task is cancelled.
    ///
    /// - Parameter finished: Called for each finished entry with its index, from any thread.
    /// - Throws: ``PrewarmRunError`` if the run cannot continue.
    func run(
        _ entries: [PrewarmEntry], _ finished: @escaping @Sendable (Int, PrewarmOutcome) -> Void
    ) async throws(PrewarmRunError)
}

/// The error that ends a run. The description is a sentence for the user.
package struct PrewarmRunError: Error, Sendable, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}

/// Processes entries in this process, on a cache directory that no server uses.
package struct LocalBackend: PrewarmBackend {
    private let prewarmer: Prewarmer
    private let concurrency: Int
    private let retries: Int

    /// - Parameters:
    ///   - describe: Returns the code and the sentence of an error, for reports.
    ///   - retries: Attempts after the first, per entry.
    package init(
        pipeline: RenditionPipeline, describe: @escaping PrewarmOutcome.Describe, concurrency: Int, retries: Int
    ) {
        prewarmer = Prewarmer(pipeline: { pipeline }, describe: describe)
        self.concurrency = concurrency
        self.retries = retries
    }

    package func run(
        _ entries: [PrewarmEntry], _ finished: @escaping @Sendable (Int, PrewarmOutcome) -> Void
    ) async throws(PrewarmRunError) {
        await withTaskGroup(of: Void.self) { group in
            for (number, entry) in entries.enumerated() {
                if number >= concurrency { await group.next() }
                if Task.isCancelled { return }
                group.addTask {
                    if let outcome = await prewarmer.warm(entry, retries: retries) { finished(number, outcome) }
                }
            }
        }
    }
}
