internal import Glibc
internal import Media
internal import Sandbox

extension SandboxError {
    /// Everything ``killCause`` may be.
    static let killCauses = ["time", "memory", "system_call", "crash", "killed", "exit", "misbehaved"]

    /// Why the worker did not end by itself, or was not believed; nil where it did, or where there was none.
    var killCause: String? {
        switch self {
        case .timeout: "time"
        case .rejected(.outOfMemory): "memory"
        case .crashed(let exit):
            switch exit.signal {
            case SIGSYS: "system_call"
            case SIGKILL: "killed"
            case nil: "exit"
            default: "crash"
            }
        case .misbehaved, .invalidOutput: "misbehaved"
        case .rejected, .queueFull, .cancelled, .unavailable: nil
        }
    }
}
