import CLinux
import Foundation
import Glibc
import Media
import SystemIO
import TestSupport
import Testing

@testable import Sandbox

extension SerialTests {
    @Suite("Faults and attacks of a worker end one job and do not affect the next", .timeLimit(.minutes(10))) struct FaultTests
    {
        private func error(_ fault: WorkerFault?, cpu: Int = 30, wall: Int = 60, on zygote: Zygote) throws -> SandboxError? {
            let supervisor = JobSupervisor(zygote: zygote)
            return try error(fault, cpu: cpu, wall: wall, supervisor)
        }

        private func error(_ fault: WorkerFault?, cpu: Int = 30, wall: Int = 60, _ supervisor: JobSupervisor) throws
            -> SandboxError?
        {
            // x264 starts threads for pictures of some size.
            let input = try SandboxFixture.input(
                fault == .noThreads ? GIFBuilder.animation(width: 128, height: 96) : GIFBuilder.animation())
            let output = try SandboxFixture.output()
            var job = SandboxFixture.job(cpu: cpu, wall: wall)
            job.fault = fault
            do throws(SandboxError) {
                let result = try supervisor.run(job, input: input, output: output).result
                #expect(result.frames == 5)
                return nil
            } catch {
                return error
            }
        }

        private func signal(_ error: SandboxError?) -> Int32? {
            switch error {
            case .crashed(let exit), .killed(let exit): return exit.signal
            default: return nil
            }
        }

        @Test(arguments: [
            (WorkerFault.killedWhenBegun, SIGKILL), (.killedWhenConfined, SIGABRT), (.killedWhenConverted, SIGABRT),
            (.killedWhenReplied, SIGABRT),
        ])
        func aWorkerThatEndsAtAnyStageIsACrashOrAKill(_ fault: WorkerFault, _ expected: Int32) throws {
            let zygote = try SandboxFixture.zygote()
            let error = try error(fault, on: zygote)
            #expect(signal(error) == expected)
            if case .killed = error { #expect(expected == SIGKILL) } else { #expect(expected == SIGABRT) }
            #expect(try self.error(nil, on: zygote) == nil)
        }

        @Test func aWorkerThatEndsWithoutAReplyIsACrash() throws {
            let zygote = try SandboxFixture.zygote()
            guard case .crashed(let exit)? = try error(.silentEnd, on: zygote) else {
                Issue.record("no crash")
                return
            }
            #expect(exit.code == 0 && exit.signal == nil)
            #expect(try error(nil, on: zygote) == nil)
        }

        @Test(arguments: [
            (WorkerFault.noMessage, SandboxError.misbehaved(.garbledMessage)), (.shortMessage, .misbehaved(.garbledMessage)),
            (.unknownMessage, .misbehaved(.garbledMessage)), (.forgedExit, .misbehaved(.garbledMessage)),
            (.twoReplies, .misbehaved(.surplusMessage)), (.progressAfterReply, .misbehaved(.surplusMessage)),
            (.progressFlood, .misbehaved(.surplusMessage)), (.absurdProgress, .misbehaved(.garbledMessage)),
            (.flood, .misbehaved(.surplusMessage)),
            (.sentDescriptor, .misbehaved(.sentDescriptors)), (.emptyMessageWithDescriptor, .misbehaved(.garbledMessage)),
            (.wrongLength, .invalidOutput(.wrongLength)), (.wrongSize, .invalidOutput(.wrongSize)),
            (.wrongDuration, .invalidOutput(.wrongDuration)), (.wrongSampleCount, .invalidOutput(.wrongSampleCount)),
            (.absurdSourceWidth, .invalidOutput(.outOfRange)), (.absurdSourceHeight, .invalidOutput(.outOfRange)),
            (.absurdLoopCount, .invalidOutput(.outOfRange)), (.negativeFailureValue, .misbehaved(.garbledMessage)),
            (.shortFile, .invalidOutput(.wrongLength)), (.garbledFile, .invalidOutput(.wrongSignature)),
            (.foreignFile, .invalidOutput(.wrongLength)),
        ])
        func falseClaimsAreDetected(_ fault: WorkerFault, _ expected: SandboxError) throws {
            let zygote = try SandboxFixture.zygote()
            #expect(try error(fault, on: zygote) == expected)
            #expect(try error(nil, on: zygote) == nil)
            try blockUntil("the end of the workers") { SandboxFixture.workers(of: zygote.process).isEmpty }
        }

        @Test(arguments: [WorkerFault.sentDescriptor, .emptyMessageWithDescriptor])
        func descriptorsThatAWorkerSendsAreClosed(_ fault: WorkerFault) throws {
            let zygote = try SandboxFixture.zygote()
            let (input, output) = (try SandboxFixture.input(GIFBuilder.animation()), try SandboxFixture.output())
            var job = SandboxFixture.job(wall: 60)
            job.fault = fault
            let hostile = job
            let before = try Self.descriptors(of: output).count
            #expect(throws: SandboxError.self) { try JobSupervisor(zygote: zygote).run(hostile, input: input, output: output) }
            #expect(try Self.descriptors(of: output).count == before)
        }

        /// This process' descriptors of a file. Those of other files come and go with other tests.
        private static func descriptors(of file: SharedDescriptor) throws -> [String] {
            func target(_ number: String) throws -> String {
                try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")
            }
            let own = try target("\(file.number)")
            return try SandboxFixture.descriptors(of: getpid()).filter { (try? target($0)) == own }
        }

        @Test(.enabled(if: SandboxFixture.filtersCalls, "this kernel has no seccomp"))
        func aWorkerThatClaimsToGetNoThreadsIsACrashIfTheServerGetsThem() throws {
            let zygote = try SandboxFixture.zygote()
            guard case .crashed(let exit)? = try error(.noThreads, on: zygote) else {
                Issue.record("no crash")
                return
            }
            #expect(exit.code == 73)
            #expect(try error(nil, on: zygote) == nil)
        }

        /// The worker's own threads are free again when the server looks, so that one more says nothing.
        @Test(.enabled(if: geteuid() == 0, "needs root, to become a user without processes"))
        func aLackOfThreadsIsFoundWhereSomeButNotEnoughAreLeft() throws {
            let user = uid_t.random(in: 100_000...1_000_000)
            let job = SandboxFixture.job()
            #expect(!JobSupervisor.lacksThreads(job))
            let process = clinux_fork()
            if process == 0 {
                var limits = clinux_limits(memory: 0, cpu_seconds: 0, file_bytes: 0, tasks: 9, descriptors: 0)
                guard setuid(user) == 0, clinux_set_limits(&limits) == 0 else { _exit(1) }
                if clinux_can_start_threads(1) == 0 || clinux_can_start_threads(8) == 0 { _exit(2) }
                if clinux_can_start_threads(9) != 0 || clinux_can_start_threads(32) != 0 { _exit(3) }
                // All of them have ended.
                if clinux_can_start_threads(8) == 0 { _exit(4) }
                _exit(JobSupervisor.lacksThreads(job) ? 0 : 5)
            }
            var status: Int32 = 0
            #expect(waitpid(process, &status, 0) == process && status == 0)
        }

        @Test(arguments: [
            (70 as Int32, true, false), (71, true, false), (73, false, true), (69, false, false), (72, false, false),
            (1, false, false),
            (256, true, true),
        ])
        func anExitCodeIsTheServersFaultOnlyIfTheSourceCannotHaveChosenIt(
            _ code: Int32, _ beforeItBegins: Bool, _ ifThreadsLack: Bool
        ) throws {
            let exit = WorkerExit(code: code, signal: nil, cpuMicroseconds: 0, peakBytes: 0)
            func isUnavailable(hasBegun: Bool, lacksThreads: Bool) -> Bool {
                let failure = JobSupervisor.failure(exit, SandboxFixture.job(), hasBegun: hasBegun) { _ in lacksThreads }
                if case .unavailable = failure { return true }
                #expect(failure == .crashed(exit))
                return false
            }
            #expect(isUnavailable(hasBegun: false, lacksThreads: false) == beforeItBegins)
            #expect(isUnavailable(hasBegun: true, lacksThreads: true) == ifThreadsLack)
            #expect(isUnavailable(hasBegun: true, lacksThreads: false) == (code == WorkerExit.notForked))
        }

        @Test(
            arguments: [
                (nil, nil, 1024), (100_000, 10, 1024), (500, 100, 200), (500, nil, 250), (100, 90, 32), (100, 200, 32),
            ] as [(Int?, Int?, Int)])
        func aWorkerGetsAtMostHalfOfTheTasksThatAreLeft(_ limit: Int?, _ current: Int?, _ expected: Int) {
            #expect(TaskBudget.spareTasks(limit: limit, current: current) == expected)
        }

        @Test(.enabled(if: OtherUser.canRunExecutable, "needs root, setpriv and an executable that others may run"))
        func theNumberOfThreadsOfAWorkerIsBounded() throws {
            let script = try OtherUser.script()
            defer { unlink(script) }
            let zygote = try Zygote.spawn(executable: script)
            guard case .crashed(let exit)? = try error(.threads, on: zygote) else {
                Issue.record("no end")
                return
            }
            // 0 if all threads were started.
            #expect(exit.code == 1)
            #expect(try error(nil, on: zygote) == nil)
        }

        /// Runs the executable as a user to whom the kernel applies limits of processes, unlike root.
        private enum OtherUser {
            static let canRunExecutable: Bool = {
                guard geteuid() == 0, access("/usr/bin/setpriv", X_OK) == 0 else { return false }
                var path = SandboxFixture.executable
                while path != "/" {
                    var status = stat()
                    guard stat(path, &status) == 0, status.st_mode & 0o001 != 0 else { return false }
                    path = URL(fileURLWithPath: path).deletingLastPathComponent().path
                }
                return true
            }()

            /// A program that becomes the executable.
            static func script() throws -> String {
                let path = "/tmp/gifreel-other-user-\(getpid())-\(UInt32.random(in: .min ... .max))"
                let text = """
                    #!/bin/sh
                    exec /usr/bin/setpriv --reuid=65534 --regid=65534 --clear-groups \(SandboxFixture.executable) "$@"

                    """
                try text.write(toFile: path, atomically: false, encoding: .utf8)
                guard chmod(path, 0o755) == 0 else { throw SystemError.last("chmod") }
                return path
            }
        }

        @Test func aHangEndsAtTheWallClockLimit() throws {
            let zygote = try SandboxFixture.zygote()
            #expect(try error(.hang, wall: 1, on: zygote) == .wallClockTimeout)
            #expect(try error(nil, on: zygote) == nil)
        }

        @Test func aBusyLoopEndsAtTheProcessorTimeLimit() throws {
            let zygote = try SandboxFixture.zygote()
            #expect(try error(.spin, cpu: 1, on: zygote) == .cpuLimitExceeded)
            #expect(try error(nil, on: zygote) == nil)
        }

        @Test(
            .enabled(if: SandboxFixture.filtersCalls, "this kernel has no seccomp"),
            arguments: [
                WorkerFault.openFile, .makeFile, .readProc, .connect, .execute, .trace, .signalParent, .fork, .mapCode,
                .writeChannelAsFile,
            ])
        func anAttemptToLeaveTheSandboxEndsTheWorker(_ fault: WorkerFault) throws {
            let zygote = try SandboxFixture.zygote()
            let process = zygote.process
            let supervisor = JobSupervisor(zygote: zygote)
            #expect(signal(try error(fault, supervisor)) == SIGSYS)
            #expect(try error(nil, supervisor) == nil)
            #expect(zygote.process == process && zygote.replacements == 0, "the parent was hit")
            #expect(supervisor.statistics.jobs == [.forbiddenCall: 1, .finished: 1])
            #expect(!FileManager.default.fileExists(atPath: "/tmp/gifreel-escaped"))
        }

        @Test func outcomesOfJobsAreCounted() throws {
            let supervisor = JobSupervisor(zygote: try SandboxFixture.zygote())
            for fault in [WorkerFault.killedWhenBegun, .killedWhenConverted, .silentEnd, .flood, .wrongSize, nil] {
                _ = try error(fault, supervisor)
            }
            let statistics = supervisor.statistics
            #expect(statistics.jobs == [.killed: 1, .crash: 1, .silent: 1, .untrue: 2, .finished: 1])
            #expect(statistics.cpuMicroseconds > 0)
        }

        @Test func anInputThatIsNotSealedIsRefused() throws {
            let number = clinux_memfd_create("unsealed")
            try #require(number >= 0)
            let input = SharedDescriptor(OwnedDescriptor(taking: number))
            let output = try SandboxFixture.output()
            let supervisor = JobSupervisor(zygote: try SandboxFixture.zygote())
            #expect(throws: SandboxError.unavailable(SystemError("the input is not sealed", code: EPERM))) {
                try supervisor.run(SandboxFixture.job(), input: input, output: output)
            }
        }
    }
}
