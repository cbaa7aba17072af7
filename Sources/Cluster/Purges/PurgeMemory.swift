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
    /// The field that ends the state, and each addition to it: what is before it is whole.
    private static let end = "end"

    package init() {}

    /// What ``append(_:behind:)`` did to ``pending``.
    enum Change {
        /// Nothing: a pending purge covers it.
        case covered
        case appended
        /// There were too many, or the purge covers all of them: one purge of everything stands for them.
        case replaced
    }

    /// Appends a purge, unless a pending one covers it.
    ///
    /// - Parameter count: The number of purges at the beginning that are on their way to the stream. They stay, and cover no later
    ///   purge.
    @discardableResult
    mutating func append(_ scope: ClusterPurge, behind count: Int = 0) -> Change {
        let rest = pending.dropFirst(count)
        if rest.contains(.all) || rest.last == scope { return .covered }
        if (scope == .all && !rest.isEmpty) || pending.count >= Self.maxPending {
            pending = pending.prefix(count) + [.all]
            return .replaced
        }
        pending.append(scope)
        return .appended
    }

    var bytes: [UInt8] {
        var writer = FieldWriter(kind: Self.kind)
        writer.append(stream)
        writer.append(position.description)
        for scope in pending { Self.write(scope, to: &writer) }
        writer.append(Self.end)
        return writer.bytes
    }

    /// What a purge that is appended adds to ``bytes``.
    static func addition(_ scope: ClusterPurge) -> [UInt8] {
        var writer = FieldWriter()
        write(scope, to: &writer)
        writer.append(end)
        return writer.bytes
    }

    private static func write(_ scope: ClusterPurge, to writer: inout FieldWriter) {
        writer.append(scope.kind)
        writer.append(scope.argument)
    }

    /// Nil for a damaged state. A damaged addition, which a crash can leave, is left out with all that follows.
    init?(_ bytes: [UInt8]) {
        guard var reader = FieldReader(bytes, kind: Self.kind), let stream = reader.text(),
            let position = reader.text().flatMap({ StreamID($0) })
        else { return nil }
        self.stream = stream
        self.position = position
        var isWhole = false
        var scopes: [ClusterPurge] = []
        while let kind = reader.text() {
            if kind == Self.end {
                for scope in scopes { append(scope) }
                scopes = []
                isWhole = true
                continue
            }
            guard let argument = reader.text(), let scope = ClusterPurge(kind: kind, argument: argument) else { break }
            scopes.append(scope)
        }
        if !isWhole { return nil }
    }
}

/// Remembers ``SavedPurges`` over restarts.
package protocol PurgeMemory: Sendable {
    /// The latest saved state; an empty one if there is none, or if it is damaged. Nil if it cannot be read at the moment.
    func load() async -> SavedPurges?
    /// Saves the state so that it outlives a crash; false if that fails.
    func save(_ saved: SavedPurges) async -> Bool
    /// Appends a pending purge to the state that was saved last, so that it outlives a crash. If it returns false, the whole state
    /// has to be saved.
    func append(_ scope: ClusterPurge) async -> Bool
    /// Whether the state that was saved last, with what was appended to it, is still what ``load()`` returns. Another directory with
    /// another file can be mounted at its path.
    func isCurrent() async -> Bool
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
        let loaded = await thread.run { () -> SavedPurges? in
            do throws(FileError) {
                return try file.read().flatMap { SavedPurges($0) } ?? SavedPurges()
            } catch {
                return nil
            }
        }
        return loaded ?? nil
    }

    package func save(_ saved: SavedPurges) async -> Bool {
        let (file, bytes) = (file, saved.bytes)
        return await thread.run { (try? file.write(bytes)) != nil } ?? false
    }

    package func append(_ scope: ClusterPurge) async -> Bool {
        let (file, bytes) = (file, SavedPurges.addition(scope))
        return await thread.run { (try? file.append(bytes)) != nil } ?? false
    }

    package func isCurrent() async -> Bool {
        let file = file
        return await thread.run { file.isCurrent } ?? false
    }

    /// Waits for the writes that were begun. Blocks.
    package func close() {
        thread.close()
    }
}
