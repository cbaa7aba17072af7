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
            var ready = entries.indices[...]
            // Entries that come before the others: their pauses are over, or their origins have places again.
            var due: [Work] = []
            // Entries whose origins have no place, by origin.
            var blocked: [String: ArraySlice<Work>] = [:]
            var places = EntryPlaces()
            while true {
                if !Task.isCancelled, !places.areTaken(of: concurrency),
                    var work = due.popLast() ?? ready.popFirst().map({ Work(number: $0, place: .init(of: entries[$0])) })
                {
                    if places.take(&work.place, of: concurrency) {
                        group.addTask { [work] in await attempt(work, at: entries[work.number], finished) }
                    } else {
                        blocked[work.place.origin, default: []].append(work)
                    }
                    continue
                }
                guard let event = await group.next() else { return }
                switch event {
                case .due(let work): due.append(work)
                case .ended(let place):
                    places.leave(place)
                    if let work = blocked[place.origin]?.popFirst() { due.append(work) }
                case .paused(var work, let pause):
                    places.leaveToOtherOrigins(&work.place)
                    group.addTask { [work] in
                        try? await Task.sleep(for: pause)
                        return .due(work)
                    }
                }
            }
        }
    }

    private struct Work {
        let number: Int
        var place: EntryPlaces.Place
        var attempts = Prewarmer.Attempts()
    }

    private enum Event {
        /// The pause of an entry is over.
        case due(Work)
        case ended(EntryPlaces.Place)
        /// The entry waits for its origin.
        case paused(Work, Duration)
    }

    private func attempt(
        _ work: Work, at entry: PrewarmEntry, _ finished: @Sendable (Int, PrewarmOutcome) -> Void
    ) async -> Event {
        var work = work
        while true {
            switch await prewarmer.attempt(entry, retries: retries, &work.attempts) {
            case .ended(let outcome)?:
                finished(work.number, outcome)
                return .ended(work.place)
            case .paused(let pause)? where pause.isForOrigin: return .paused(work, pause.duration)
            // Without capacity, another entry could not be made either.
            case .paused(let pause)?: try? await Task.sleep(for: pause.duration)
            case nil: return .ended(work.place)
            }
        }
    }
}
