package import Store

/// The callbacks of a node's owner for changes in the cluster. Each runs on any thread, which it must not block.
package struct ClusterHandlers: Sendable {
    /// Called when purges were missed, or may have been. Has every alias revalidated at its origin before its next use, and
    /// drops what a former process has not sent to other nodes. May suspend.
    package var revalidate: @Sendable (MissedPurges) async -> Void
    /// Called once for each change that an operator should know about.
    package var onEvent: @Sendable (ClusterEvent) -> Void = { _ in }
    /// Called when a node has found that a source fails. The last argument returns whether no known purge overtook the record.
    /// Call it after recording the receiver's own epoch.
    package var onFailure: @Sendable (_ sourceURL: String, _ record: SharedRecord, _ isCurrent: () -> Bool) -> Void = {
        _, _, _ in
    }
    /// Called each time this node joins or rejoins the cluster, after it has applied the purges that it missed.
    package var onFollow: @Sendable () -> Void = {}

    package init(revalidate: @escaping @Sendable (MissedPurges) async -> Void) {
        self.revalidate = revalidate
    }
}
