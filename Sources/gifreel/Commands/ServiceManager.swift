internal import CLinux
internal import Glibc

/// Reports the state of the service to systemd (sd_notify(3)). Does nothing without `NOTIFY_SOCKET`.
struct ServiceManager: Sendable {
    private let address: String?

    init(address: String? = getenv("NOTIFY_SOCKET").map { String(cString: $0) }) {
        self.address = address
    }

    /// Reports that the server answers requests.
    func ready() { send("READY=1") }

    /// Reports that a reload has begun; ``ready()`` must follow.
    func reloading() {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        send("RELOADING=1\nMONOTONIC_USEC=\(now.tv_sec * 1_000_000 + now.tv_nsec / 1000)")
    }

    func stopping() { send("STOPPING=1") }

    /// Errors are ignored: systemd has time limits of its own.
    private func send(_ state: String) {
        guard let address else { return }
        _ = clinux_send_datagram(address, state)
    }
}
