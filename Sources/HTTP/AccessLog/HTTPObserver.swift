/// Who hears of finished requests.
package protocol HTTPObserver: Sendable {
    /// Requests that have been answered, or broken off, since the last call. Called on a thread of the server's own that
    /// does nothing else, so it may write to a file; while it takes its time, batches beyond a bound are dropped and counted.
    func requestsFinished(_ batch: HTTPAccessBatch)
}
