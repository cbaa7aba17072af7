internal import Glibc
internal import Media
internal import Sandbox

extension SandboxError {
    /// Everything ``killCause`` may be.
    static let killCauses = [
        "time", "wall_time", "memory", "system_call", "crash", "killed", "exit", "misbehaved", "zygote",
    ]

    /// Why the worker did not end by itself, or was not believed; nil where it did, or where there was none.
    var killCause: String? {
        switch self {
        case .cpuLimitExceeded: "time"
        case .wallClockTimeout: "wall_time"
        case .killed: "killed"
        case .zygoteUnresponsive: "zygote"
        case .rejected(.outOfMemory): "memory"
        case .crashed(let exit):
            switch exit.signal {
            case SIGSYS: "system_call"
            case nil: "exit"
            default: "crash"
            }
        case .misbehaved, .invalidOutput: "misbehaved"
        case .rejected, .queueFull, .cancelled, .unavailable: nil
        }
    }
}
