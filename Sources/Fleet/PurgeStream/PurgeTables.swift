package import Store
internal import SystemIO

/// How far a node has applied the stream of purges.
struct PurgePosition: Sendable, Equatable {
    /// The identity of the stream; empty before the first one.
    var stream = ""
    /// All purges up to here are applied.
    var id = StreamID.zero
}

/// The cluster state that a node keeps across restarts, and its statements, for use within one transaction. ``PurgeTable``
/// holds the purges.
package struct PurgeTables {
    package static let owned = Ledger.Tables(
        owner: "cluster", firstVersion: 3,
        steps: [
            """
            CREATE TABLE position (only INTEGER PRIMARY KEY CHECK (only = 1), stream TEXT NOT NULL, id TEXT NOT NULL);
            -- The cluster's clock at a time of this machine's monotonic clock, and when the node last took part in the cluster, in
            -- milliseconds of that clock, under which name, and the other live nodes: names with spaces between them.
            CREATE TABLE clock (
                only INTEGER PRIMARY KEY CHECK (only = 1), boot TEXT NOT NULL, earliest INTEGER NOT NULL, latest INTEGER NOT NULL,
                monotonic INTEGER NOT NULL, part INTEGER NOT NULL, node TEXT NOT NULL);
            """
        ])

    private let database: SQLiteConnection

    init(_ database: SQLiteConnection) {
        self.database = database
    }

    func position() throws -> PurgePosition {
        try database.first("SELECT stream, id FROM position") { row in
            guard let id = StreamID(try row.value(1)) else { throw LedgerError(.damage, "the position is no id") }
            return PurgePosition(stream: try row.value(0), id: id)
        } ?? PurgePosition()
    }

    func setPosition(_ position: PurgePosition) throws {
        try database.run("INSERT OR REPLACE INTO position VALUES (1, ?, ?)", [position.stream, position.id.description])
    }

    /// Returns the cluster's clock as saved by a process since this machine booted, and when the process last took part in the
    /// cluster.
    ///
    /// - Parameter boot: The boot id of the machine; empty if it is unknown, which matches no clock.
    func clock(ofBoot boot: String) throws -> (sample: SharedClock.Sample, part: Int64)? {
        guard !boot.isEmpty else { return nil }
        return try database.first("SELECT earliest, latest, monotonic, part FROM clock WHERE boot = ?", [boot]) { row in
            func milliseconds(_ column: Int) throws -> Int64 { try row.number(column, in: 0...ClusterTime.maxMilliseconds) }
            let sample = SharedClock.Sample(
                earliest: try milliseconds(0), latest: try milliseconds(1), monotonic: try milliseconds(2))
            return (sample, try milliseconds(3))
        }
    }

    /// Returns the name under which a former process took part in the cluster, and those of the other nodes that were live then;
    /// empty if there was none.
    func nodes() throws -> [String] {
        try database.first("SELECT node FROM clock") { try $0.value(0) as String }?.split(separator: " ").map(String.init) ?? []
    }

    /// - Parameters:
    ///   - part: When the node last took part in the cluster, by the monotonic clock.
    ///   - nodes: See ``nodes()``.
    func setClock(_ sample: SharedClock.Sample, ofBoot boot: String, part: Int64, nodes: [String]) throws {
        try database.run(
            "INSERT OR REPLACE INTO clock VALUES (1, ?, ?, ?, ?, ?, ?)",
            [boot, sample.earliest, sample.latest, sample.monotonic, part, nodes.joined(separator: " ")])
    }
}
