import CSystemCalls
import TestSupport
import Testing

@Suite("A kernel without Landlock", .timeLimit(.minutes(5))) struct MissingLandlockTests {
    /// The log of a server on such a kernel, and whether it started.
    ///
    /// A process inherits the system call filter of the thread that starts it, and the thread ends with this function.
    private func start(_ settings: [String]) throws -> (log: String, isRunning: Bool) {
        let outcome = try atOnce(1) { _ -> (log: String, isRunning: Bool)? in
            guard csystemcalls_hide_landlock() == 0 else { return nil }
            do {
                let server = try GifreelProcess(settings)
                return (server.log, server.isRunning)
            } catch let error as GifreelProcess.NotStarted {
                return (error.log, false)
            }
        }[0]
        return try #require(outcome, "a filter of system calls cannot be installed")
    }

    @Test func stopsTheStart() throws {
        let (log, isRunning) = try start([])
        #expect(!isRunning && log.contains("This kernel does not offer landlock, which"), "\(log)")
    }

    @Test func isLoggedWhereTheSandboxIsNotRequired() throws {
        let (log, isRunning) = try start(["sandbox.require=false"])
        #expect(isRunning && log.contains("THE SANDBOX IS WEAK: this kernel does not offer landlock, so"), "\(log)")
    }
}
