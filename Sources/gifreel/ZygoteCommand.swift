internal import ArgumentParser

/// What the server runs in place of a zygote that has died; of no use to anybody else.
struct ZygoteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: WorkerProcess.command, shouldDisplay: false)

    func run() {
        WorkerProcess.serve()
    }
}
