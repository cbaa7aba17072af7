import Testing

/// What operators use. One test after the other: most block a thread of Swift's pool while a process works, and the suites
/// beside these need that pool.
@Suite("Commands and endpoints for operators", .serialized) enum OperationsTests {}
