package import Media

/// What a worker made, and what it took.
package struct WorkerReport: Sendable, Equatable {
    package var result: TranscodeResult
    /// From the asking to the beginning.
    package var queued: Duration
    /// From the beginning to the end.
    package var ran: Duration
    /// Processor time in microseconds.
    package var cpuMicroseconds: Int
    /// The worker's largest resident size, in bytes.
    package var peakBytes: Int
}
