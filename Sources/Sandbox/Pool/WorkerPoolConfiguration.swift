/// How many workers there are and how many jobs may wait for them (API.md §6, `transcode.*`).
package struct WorkerPoolConfiguration: Sendable, Equatable {
    /// Workers at once.
    package var workers: Int
    /// Jobs that may wait.
    package var queue: Int
    /// Encoder threads of a job that is alone; one that is not has one.
    package var threadsAlone: Int

    package init(workers: Int, queue: Int = 64, threadsAlone: Int) {
        self.workers = workers
        self.queue = queue
        self.threadsAlone = threadsAlone
    }
}
