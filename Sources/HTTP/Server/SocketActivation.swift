internal import Glibc

/// The listening sockets that systemd opened for this process (sd_listen_fds(3)).
struct SocketActivation {
    /// The descriptors passed, from 3 on.
    let descriptors: Range<Int32>

    /// What the environment says: `LISTEN_FDS` counts only where `LISTEN_PID` is this process.
    init(environment: (String) -> String? = SocketActivation.variable, process: Int32 = getpid()) {
        let first: Int32 = 3
        guard let pid = environment("LISTEN_PID").flatMap({ Int32($0) }), pid == process,
            let count = environment("LISTEN_FDS").flatMap({ Int32($0) }), (1...64).contains(count)
        else {
            descriptors = first..<first
            return
        }
        descriptors = first..<first + count
    }

    private static func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }
    }
}
