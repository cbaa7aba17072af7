internal import SystemIO

/// What a node remembers of purges over restarts.
package struct SavedPurges: Sendable, Equatable {
    /// The identity of the stream to which the position belongs; empty before the first one.
    package var stream = ""
    /// All purges up to here are applied.
    package var position = StreamID.zero
    /// Purges made without the cluster, to be added to the stream, in order.
    package var pending: [ClusterPurge] = []

    /// The most purges that are remembered; more become one purge of everything.
    private static let maxPending = 16_384
    private static let kind = UInt8(ascii: "P")

    package init() {}

    mutating func append(_ scope: ClusterPurge) {
        if pending.contains(.all) || pending.last == scope { return }
        pending.append(scope)
        if scope == .all || pending.count > Self.maxPending { pending = [.all] }
    }

    var bytes: [UInt8] {
        var writer = FieldWriter(kind: Self.kind)
        writer.append(stream)
        writer.append(position.description)
        for scope in pending {
            writer.append(scope.kind)
            writer.append(scope.argument)
        }
        // The last field shows that the file is whole.
        writer.append("end")
        return writer.bytes
    }

    /// Nil for a damaged file.
    init?(_ bytes: [UInt8]) {
        guard var reader = FieldReader(bytes, kind: Self.kind), let stream = reader.text(),
            let position = reader.text().flatMap({ StreamID($0) })
        else { return nil }
        self.stream = stream
        self.position = position
        while let kind = reader.text() {
            if kind == "end" {
                if reader.isAtEnd { return }
                return nil
            }
            guard let argument = reader.text(), let scope = ClusterPurge(kind: kind, argument: argument) else { return nil }
            pending.append(scope)
        }
        return nil
    }
}

/// Remembers ``SavedPurges`` over restarts.
package protocol PurgeMemory: Sendable {
    /// The latest saved state; nil without one, or if it is damaged.
    func load() async -> SavedPurges?
    /// Saves the state so that it outlives a crash; false if that fails.
    func save(_ saved: SavedPurges) async -> Bool
}

/// Remembers purges in a file, with blocking work on a thread of its own.
package final class PurgeFile: PurgeMemory {
    private let file: DurableFile
    private let thread = WorkThreads(count: 1, limit: 64, name: "cluster-disk")

    package init(path: String) {
        file = DurableFile(path: path)
    }

    package func load() async -> SavedPurges? {
        let file = file
        return await thread.run { (try? file.read()).flatMap { $0.flatMap { SavedPurges($0) } } } ?? nil
    }

    package func save(_ saved: SavedPurges) async -> Bool {
        let (file, bytes) = (file, saved.bytes)
        return await thread.run { (try? file.write(bytes)) != nil } ?? false
    }

    /// Waits for the writes that were begun. Blocks.
    package func close() {
        thread.close()
    }
}
