import TestSupport

/// Suspends until `condition` holds. Unlike `waitUntil` with a closure that does not suspend, it never blocks a thread of the
/// cooperative pool.
func eventually(
    _ what: @autoclosure () -> String, within limit: Duration = .seconds(60), isolation: isolated (any Actor)? = #isolation,
    file: String = #fileID, line: Int = #line, _ condition: () async throws -> Bool
) async throws {
    try await waitUntil(what(), within: limit, isolation: isolation, file: file, line: line, condition)
}
