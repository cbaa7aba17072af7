internal import CLinux
internal import Dispatch
internal import Glibc

/// Reports the state of the service to systemd (sd_notify(3)). Does nothing without `NOTIFY_SOCKET`.
struct ServiceManager: Sendable {
    private let address: String?
    /// The microseconds after which systemd ends a service that does not report; nil without a limit.
    private let watchdogLimit: Int64?

    init() {
        func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
        address = variable("NOTIFY_SOCKET")
        let limit = variable("WATCHDOG_USEC").flatMap { Int64($0) }.flatMap { $0 > 0 ? $0 : nil }
        // The variables may be those of a parent process.
        let isMeant = variable("WATCHDOG_PID").map { $0 == String(getpid()) } ?? true
        watchdogLimit = isMeant ? limit : nil
    }

    /// Reports that the server answers requests.
    func ready() { send("READY=1") }

    /// Reports that a reload has begun; ``ready()`` must follow.
    func reloading() {
        // The clock of Dispatch is CLOCK_MONOTONIC.
        send("RELOADING=1\nMONOTONIC_USEC=\(DispatchTime.now().uptimeNanoseconds / 1000)")
    }

    func stopping() { send("STOPPING=1") }

    /// Reports twice per watchdog limit that the service is alive, if it is, as sd_watchdog_enabled(3) recommends.
    ///
    /// - Parameter ping: Calls its argument, on any thread, if the service is alive.
    /// - Returns: The timer, which runs until it is released; nil without a limit.
    func startWatchdog(_ ping: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) -> (any DispatchSourceTimer)? {
        guard address != nil, let watchdogLimit else { return nil }
        // Sending may block, which the thread that answers must not.
        let queue = DispatchQueue(label: "gifreel-watchdog")
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now(), repeating: .microseconds(max(1, Int(watchdogLimit / 2))))
        timer.setEventHandler { ping { queue.async { send("WATCHDOG=1") } } }
        timer.resume()
        return timer
    }

    /// Errors are ignored: systemd has time limits of its own.
    private func send(_ state: String) {
        guard let address else { return }
        _ = clinux_send_datagram(address, state)
    }
}
