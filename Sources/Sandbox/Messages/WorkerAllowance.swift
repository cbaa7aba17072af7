internal import Media

/// The resource limits of one job.
package struct WorkerAllowance: Sendable, Equatable {
    /// CPU time in seconds.
    package var cpu: Int
    /// Bytes of memory beyond those that a worker inherits.
    package var memory: Int
    /// The size of the output in bytes.
    package var output: Int
    /// Wall-clock time in seconds.
    package var wall: Int

    /// - Parameter wall: Nil means twice the CPU time, because workers share processors.
    package init(cpu: Int = 30, memory: Int = 512 << 20, output: Int = MediaLimits.outputBytes, wall: Int? = nil) {
        self.cpu = cpu
        self.memory = memory
        self.output = output
        self.wall = wall ?? 2 * cpu
    }

    /// Returns the allowance of a conversion that is expected to cost `cost` times as much as a conversion to H.264 and to need
    /// `share` times the memory limit.
    package func times(_ cost: Int, memory share: Double = 1) -> WorkerAllowance {
        var scaled = self
        // The setting is at most 2⁴⁰, so a Double represents it exactly.
        scaled.memory = Int(Double(memory) * share)
        // Each setting is at most a day, so neither product overflows.
        scaled.cpu *= cost
        scaled.wall *= cost
        return scaled
    }
}
