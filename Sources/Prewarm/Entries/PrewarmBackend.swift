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
        await withTaskGroup(of: Event.self) { group in
            var ready = entries.indices.map { Work(number: $0) }[...]
            var running = 0
            while true {
                if running < concurrency, !Task.isCancelled, let work = ready.popFirst() {
                    running += 1
                    group.addTask { await attempt(work, at: entries[work.number], finished) }
                    continue
                }
                guard let event = await group.next() else { return }
                switch event {
                case .due(let work): ready.append(work)
                case .ended: running -= 1
                case .paused(let work, let pause):
                    // An entry takes no place during its pause.
                    running -= 1
                    group.addTask {
                        try? await Task.sleep(for: pause)
                        return .due(work)
                    }
                }
            }
        }
    }

    private struct Work {
        let number: Int
        var attempts = Prewarmer.Attempts()
    }

    private enum Event {
        /// The pause of an entry is over.
        case due(Work)
        case ended
        case paused(Work, Duration)
    }

    private func attempt(
        _ work: Work, at entry: PrewarmEntry, _ finished: @Sendable (Int, PrewarmOutcome) -> Void
    ) async -> Event {
        var work = work
        switch await prewarmer.attempt(entry, retries: retries, &work.attempts) {
        case .ended(let outcome)?: finished(work.number, outcome)
        case .paused(let pause)?: return .paused(work, pause)
        case nil: break
        }
        return .ended
    }
}
