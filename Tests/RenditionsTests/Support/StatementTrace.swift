import CSystem
import Synchronization

/// Records the statements that SQLite runs on one database.
final class StatementTrace: Sendable {
    /// The statements on each traced database, by its path.
    private static let statements = Mutex<[String: [String]]>([:])
    private let path: String

    /// Begins to record. The connections must have been opened after ``install()``.
    init(path: String) {
        self.path = path
        Self.statements.withLock { $0[path] = [] }
    }

    deinit {
        Self.statements.withLock { $0[path] = nil }
    }

    /// The queries of renditions so far, without those within changes.
    var lookUps: [String] {
        (Self.statements.withLock { $0[path] } ?? []).filter { sql in
            sql.hasPrefix("SELECT") && (sql.contains("FROM aliases") || sql.contains("FROM objects"))
        }
    }

    /// Has SQLite report the statements of all connections that are opened after this.
    static func install() { installed }

    private static let installed: Void = {
        let entry: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?, UnsafeRawPointer?) -> Int32 = { connection, _, _ in
            sqlite3_trace_v2(
                connection, UInt32(SQLITE_TRACE_STMT),
                { _, _, statement, text in
                    guard let text, let connection = sqlite3_db_handle(OpaquePointer(statement)),
                        let path = sqlite3_db_filename(connection, "main")
                    else { return 0 }
                    let sql = String(cString: text.assumingMemoryBound(to: CChar.self))
                    StatementTrace.statements.withLock { $0[String(cString: path)]?.append(sql) }
                    return 0
                }, nil)
        }
        sqlite3_auto_extension(unsafeBitCast(entry, to: (@convention(c) () -> Void).self))
    }()
}
