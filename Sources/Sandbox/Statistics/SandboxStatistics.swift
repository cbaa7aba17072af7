/// What the sandbox has done since the process began.
package struct SandboxStatistics: Sendable, Equatable {
    /// Jobs that had a worker, by what became of them.
    package var jobs: [JobFate: Int] = [:]
    /// Processor time that workers took, in microseconds.
    package var cpuMicroseconds = 0
    /// Zygotes that were started in place of another.
    package var replacedZygotes = 0

    package init() {}
}
