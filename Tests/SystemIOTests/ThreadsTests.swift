import Glibc
import Synchronization
import SystemIO
import Testing

@Suite("Threads run their body, and semaphores count signals", .timeLimit(.minutes(10))) struct ThreadsTests {
    @Test func aSemaphoreCounts() {
        let semaphore = Semaphore(value: 1)
        semaphore.signal()
        #expect(semaphore.wait(for: .zero))
        #expect(semaphore.wait(for: .seconds(60)))
        #expect(!semaphore.wait(for: .zero))
        #expect(!semaphore.wait(for: .seconds(-5)))
        let start = ContinuousClock.now
        #expect(!semaphore.wait(for: .milliseconds(20)))
        #expect(ContinuousClock.now - start >= .milliseconds(20))
    }

    @Test func aSignalReleasesOneWaitingThread() {
        let (semaphore, done) = (Semaphore(), Semaphore())
        let threads = (0..<3).map { _ in
            SystemThread.start(name: "test") {
                semaphore.wait()
                done.signal()
            }
        }
        semaphore.signal()
        done.wait()
        #expect(!done.wait(for: .milliseconds(20)))
        semaphore.signal()
        semaphore.signal()
        for thread in threads { thread?.join() }
        #expect(done.wait(for: .zero) && done.wait(for: .zero))
    }

    @Test func aThreadHasItsNameAndBlocksSignals() {
        let name = Mutex("")
        let isBlocked = Atomic(false)
        let thread = SystemThread.start(name: "a-long-name-that-is-cut") {
            let text = try? Files.read("/proc/thread-self/comm")
            name.withLock { $0 = String(decoding: text ?? [], as: UTF8.self) }
            var set = sigset_t()
            pthread_sigmask(SIG_BLOCK, nil, &set)
            isBlocked.store(sigismember(&set, SIGPIPE) == 1, ordering: .relaxed)
        }
        thread?.join()
        #expect(name.withLock { $0 } == "a-long-name-tha\n")
        let blocked = isBlocked.load(ordering: .relaxed)
        #expect(blocked)
    }
}
