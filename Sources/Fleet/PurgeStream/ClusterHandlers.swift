package import Store

/// What the owner of a node does about changes in the cluster. Each is called on any thread, which it must not block.
package struct ClusterHandlers: Sendable {
    /// Has the origin of every alias asked before the alias is used again, and drops what a former process has not sent to other nodes:
    /// purges were missed, or may have been. May suspend.
    package var revalidate: @Sendable (MissedPurges) async -> Void
    /// Called once for each change that an operator should know.
    package var onEvent: @Sendable (ClusterEvent) -> Void = { _ in }
    /// Called when a node has found that a source fails. The last argument says whether no known purge overtook the record: it must be
    /// called after the receiver has noted its own epoch.
    package var onFailure: @Sendable (_ sourceURL: String, _ record: SharedRecord, _ isCurrent: () -> Bool) -> Void = {
        _, _, _ in
    }
    /// Called each time this node joins or rejoins the cluster, after it has applied the purges that it missed.
    package var onFollow: @Sendable () -> Void = {}

    package init(revalidate: @escaping @Sendable (MissedPurges) async -> Void) {
        self.revalidate = revalidate
    }
}
