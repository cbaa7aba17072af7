internal import Sandbox

/// The hidden command by which the executable becomes the parent of worker processes.
package enum WorkerProcess {
    package static let command = Zygote.command

    /// Serves the process that started this one, over descriptor 3, until it is gone.
    package static func serve() -> Never {
        Zygote.serve()
    }
}
