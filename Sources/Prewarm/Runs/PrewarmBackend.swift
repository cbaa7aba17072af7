/// What carries a run's entries out.
package protocol PrewarmBackend: Sendable {
    /// Sees to it that the entries are in the cache, several at once, and returns when all are done or the task is cancelled.
    ///
    /// - Parameter finished: Hears of each entry, by its place in the list, from any thread.
    /// - Throws: ``PrewarmRunError`` where nothing can go on.
    func run(
        _ entries: [PrewarmEntry], _ finished: @escaping @Sendable (Int, PrewarmOutcome) -> Void
    ) async throws(PrewarmRunError)
}

/// Why a run cannot go on; the description is a sentence for its user.
package struct PrewarmRunError: Error, Sendable, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
