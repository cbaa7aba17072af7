internal import CLinux
internal import Glibc

/// The order in which the kernel kills processes when memory runs out: workers, then the zygote, then the server, which handles
/// their loss. By default it kills the largest process, which is the server while animations are small.
struct MemoryPriority {
    private let file: Int32
    private let zygote: Int32
    private static let first: Int32 = 1000

    /// Opens the score of the zygote, which is that of the server until ``set(isWorker:)``; nil if there is none.
    init?() {
        var server: Int32 = 0
        file = clinux_open_oom_score(&server)
        guard file >= 0 else { return nil }
        zygote = min(Self.first, server + 500)
    }

    /// Sets the zygote's score. A worker inherits it, so it is set for a worker around a fork.
    func set(isWorker: Bool) {
        clinux_set_oom_score(file, isWorker ? Self.first : zygote)
    }
}
