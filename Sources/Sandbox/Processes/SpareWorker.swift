internal import CLinux
internal import Glibc

/// A worker forked ahead of its job, so that no job waits for the fork.
///
/// If many jobs are expected, the worker runs a conversion before it waits, so that the pages that conversions write to are
/// already its own copies. It has read no source yet and is confined like the zygote.
struct SpareWorker {
    let process: pid_t
    private let socket: Int32

    /// Forks a worker; nil if the system cannot. `warmUp` is the file for the output of the warm-up, nil for none.
    init?(parent: Worker.Parent, warmUp: Int32?) {
        var pair: [Int32] = [-1, -1]
        guard clinux_message_pair(&pair) == 0 else { return nil }
        parent.memoryPriority?.set(isWorker: true)
        process = clinux_fork()
        socket = pair[0]
        if process == 0 { Self.wait(on: pair[1], parent, warmUp) }
        parent.memoryPriority?.set(isWorker: false)
        close(pair[1])
        if process < 0 {
            close(socket)
            return nil
        }
    }

    /// Passes the job to the worker; returns false if the worker has ended.
    ///
    /// - Parameter descriptors: Input, output and channel. The caller keeps and closes its own copies.
    func begin(_ job: WorkerJob, descriptors: [Int32]) -> Bool {
        defer { close(socket) }
        let sent: Void? = try? MessageChannel(socket: socket).send(WorkerMessage.job(job), descriptors: descriptors)
        return sent != nil
    }

    /// The CPU time so far, in microseconds.
    var cpuMicroseconds: Int { Int(clinux_cpu_time(process)) }

    /// Closes the socket of a worker that has ended.
    func forget() {
        close(socket)
    }

    private static func wait(on socket: Int32, _ parent: Worker.Parent, _ warmUp: Int32?) -> Never {
        clinux_name_thread("gifreel-spare")
        let kept = [socket] + (warmUp.map { [$0] } ?? [])
        guard clinux_die_with_parent() == 0, getppid() == parent.zygote, clinux_keep_only(kept, Int32(kept.count)) == 0
        else { _exit(0) }
        clinux_reserve_heap(Worker.heap)
        clinux_commit_heap(Worker.leastHeap, Worker.largePages)
        if warmUp != nil {
            WarmUp.repeatShortly(output: 4)
            close(4)
        }
        guard let received = try? MessageChannel(socket: 3).receive(), let job = received.message?.job,
            received.descriptors.count == 3
        else { _exit(0) }
        Worker.run(job, descriptors: received.descriptors, parent: parent)
    }
}
