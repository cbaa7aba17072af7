/// The resources of one job.
package struct WorkerAllowance: Sendable, Equatable {
    /// Seconds of processor time.
    package var cpu: Int
    /// Bytes of memory in addition to those that a worker inherits.
    package var memory: Int
    /// Bytes of the output.
    package var output: Int
    /// Seconds of wall-clock time.
    package var wall: Int

    /// - Parameter wall: Nil means twice the processor time, because workers share processors.
    package init(cpu: Int = 30, memory: Int = 512 << 20, output: Int = 256 << 20, wall: Int? = nil) {
        self.cpu = cpu
        self.memory = memory
        self.output = output
        self.wall = wall ?? 2 * cpu
    }

    /// The allowance of a conversion that is expected to cost `cost` times as much as one to H.264, and to need `memory` times the
    /// limit of others.
    package func times(_ cost: Int, memory share: Double = 1) -> WorkerAllowance {
        var scaled = self
        // The setting is at most 2⁴⁰, so that no bit is lost.
        scaled.memory = Int(Double(memory) * share)
        // Each setting is at most a day, so that neither product overflows.
        scaled.cpu *= cost
        scaled.wall *= cost
        return scaled
    }
}
