package import Media

/// A job for a worker process, and the resources it may use.
package struct WorkerJob: Sendable, Equatable {
    package var transcoder: Transcoder
    package var allowance: Allowance
    /// A fault that a test injects. Release builds ignore it.
    package var fault: WorkerFault?

    /// The resources of one job.
    package struct Allowance: Sendable, Equatable {
        /// Seconds of processor time.
        package var cpu: Int
        /// Bytes of memory beyond what a worker has when it begins.
        package var memory: Int
        /// Bytes of the output.
        package var output: Int
        /// Seconds of wall-clock time.
        package var wall: Int

        /// The defaults are those of the settings `limits.cpu` and `limits.memory`. The wall-clock limit is twice the processor
        /// time, because workers share processors.
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
