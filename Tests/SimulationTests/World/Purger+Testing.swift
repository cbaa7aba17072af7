@testable import Store

extension Purger {
    /// Carries out a purge of this node.
    func run(_ scope: PurgeScope) -> Result<PurgeCounts, CacheError> {
        run([Purge(scope, madeAt: 0, isLocal: true, token: StagedFile.uniqueName(), entry: "")])
    }
}
