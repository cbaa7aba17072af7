internal import CLinux
internal import Glibc

/// Tells systemd how the service is (sd_notify(3)); does nothing where nobody listens.
struct ServiceManager: Sendable {
    private let address: String?

    init(address: String? = getenv("NOTIFY_SOCKET").map { String(cString: $0) }) {
        self.address = address
    }

    /// Requests are answered from here on.
    func ready() { send("READY=1") }

    /// The settings are being read again; ``ready()`` follows.
    func reloading() {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        send("RELOADING=1\nMONOTONIC_USEC=\(now.tv_sec * 1_000_000 + now.tv_nsec / 1000)")
    }

    func stopping() { send("STOPPING=1") }

    /// Where the message does not arrive, systemd has its own time limits.
    private func send(_ state: String) {
        guard let address else { return }
        _ = clinux_send_datagram(address, state)
    }
}
