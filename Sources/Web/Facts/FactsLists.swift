package import SystemIO

/// The threads and limits of requests for the facts of many sources. It lives as long as the process.
///
/// Parsing and composing lists takes milliseconds, which neither an event loop nor the cooperative pool has to spare.
package final class FactsLists: Sendable {
    /// Bounds the lists in progress, in total and per client network.
    let admission = UploadAdmission(UploadAdmission.Limits(uploads: 64, bytes: 8 << 20))
    let threads: WorkThreads

    /// - Parameter threads: Closed with ``close()``.
    package init(threads: WorkThreads = WorkThreads(count: 1, limit: 256, name: "gifreel-facts")) {
        self.threads = threads
    }

    /// Ends the threads. Blocks.
    package func close() {
        threads.close()
    }
}
