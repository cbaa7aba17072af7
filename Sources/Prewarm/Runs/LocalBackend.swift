package import Renditions
internal import Synchronization

/// Works in this process, directly on a cache directory that no server uses.
package struct LocalBackend: PrewarmBackend {
    private let prewarmer: Prewarmer
    private let concurrency: Int
    private let retries: Int

    /// - Parameters:
    ///   - describe: Gives the code and the sentence of an error, for reports.
    ///   - retries: Attempts after the first, per entry.
    package init(
        store: RenditionStore, describe: @escaping PrewarmFailure.Describe, concurrency: Int, retries: Int
    ) {
        prewarmer = Prewarmer(store: { store }, describe: describe)
        self.concurrency = concurrency
        self.retries = retries
    }

    package func run(
        _ entries: [PrewarmEntry], _ finished: @escaping @Sendable (Int, PrewarmOutcome) -> Void
    ) async throws(PrewarmRunError) {
        let next = EntryCounter()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<min(concurrency, entries.count) {
                group.addTask {
                    while !Task.isCancelled {
                        let number = next.take()
                        guard number < entries.count,
                            let outcome = await prewarmer.warm(entries[number], retries: retries)
                        else { return }
                        finished(number, outcome)
                    }
                }
            }
        }
    }
}

/// Numbers from 0 on, each given out once.
private final class EntryCounter: Sendable {
    private let next = Atomic(0)

    func take() -> Int { next.add(1, ordering: .relaxed).oldValue }
}
