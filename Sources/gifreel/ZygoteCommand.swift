internal import ArgumentParser
internal import Sandbox

/// The hidden command that the server runs to replace a zygote that ended: the parent of the worker processes.
struct ZygoteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: Zygote.command, shouldDisplay: false)

    /// Serves the parent process over descriptor 3 until that ends.
    func run() {
        Zygote.serve()
    }
}
