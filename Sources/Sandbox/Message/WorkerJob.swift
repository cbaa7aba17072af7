package import Media

/// What a worker process is asked to do, and what it may use for it.
package struct WorkerJob: Sendable, Equatable {
    package var transcoder: Transcoder
    package var allowance: Allowance
    /// What a test has the worker do; release builds do not.
    package var fault: WorkerFault?

    /// The resources of one job.
    package struct Allowance: Sendable, Equatable {
        /// Seconds of processor time.
        package var cpu: Int
        /// Bytes of memory beyond what a worker has when it begins.
        package var memory: Int
        /// Bytes of the output.
        package var output: Int
        /// Seconds from the beginning to the end, by the clock.
        package var wall: Int

        /// API.md §6: 30 s, 512 MiB; twice the processor time by the clock, because workers share processors.
        package init(cpu: Int = 30, memory: Int = 512 << 20, output: Int = 256 << 20, wall: Int? = nil) {
            self.cpu = cpu
            self.memory = memory
            self.output = output
            self.wall = wall ?? 2 * cpu
        }
    }

    package init(transcoder: Transcoder, allowance: Allowance = Allowance(), fault: WorkerFault? = nil) {
        self.transcoder = transcoder
        self.allowance = allowance
        self.fault = fault
    }
}
