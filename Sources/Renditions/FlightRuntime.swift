package import SystemIO

/// What runs the work of flights and measures their time. Tests replace it, to decide the order of events.
package struct FlightRuntime: Sendable {
    /// Runs the work; nil for Swift's default.
    package var executor: (any TaskExecutor)?
    /// Starts the timers of flights and of their callers.
    package var startDeadline: Deadline.Start

    package init(executor: (any TaskExecutor)? = nil, startDeadline: @escaping Deadline.Start = Deadline.start) {
        self.executor = executor
        self.startDeadline = startDeadline
    }

    /// Swift's default executor and timers of the system.
    package static let system = FlightRuntime()
}
