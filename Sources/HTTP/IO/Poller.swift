internal import CLinux
internal import SystemIO

/// An epoll instance. Tokens, not pointers, go through the kernel, so that a report for a connection that has gone
/// can be told from one for its successor.
final class Poller: Sendable {
    private let descriptor: SharedDescriptor

    init() throws(SystemError) {
        let number = clinux_epoll_create()
        guard number >= 0 else { throw .last("epoll_create1") }
        descriptor = SharedDescriptor(OwnedDescriptor(taking: number))
    }

    /// Watches for input, output and hang-up at once, reporting only changes: no further call is needed for a
    /// connection's whole life. Returns false where the kernel refuses.
    func addConnection(_ number: Int32, token: UInt64) -> Bool {
        let interest = clinux_event_in | clinux_event_out | clinux_event_hangup_read | clinux_event_edge
        return clinux_epoll_add(descriptor.number, number, interest, token) == 0
    }

    /// Watches for input as long as there is any; a `shared` descriptor wakes one poller, not all.
    func addReadable(_ number: Int32, token: UInt64, shared: Bool = false) throws(SystemError) {
        let interest = clinux_event_in | (shared ? clinux_event_exclusive : 0)
        guard clinux_epoll_add(descriptor.number, number, interest, token) == 0 else { throw .last("epoll_ctl") }
    }

    func remove(_ number: Int32) {
        _ = clinux_epoll_remove(descriptor.number, number)
    }

    /// Waits up to `timeout` milliseconds (-1: for ever) for reports; a signal ends the wait without any.
    func wait(_ reports: inout Reports, timeout: Int32) {
        reports.count = max(0, Int(clinux_epoll_wait(descriptor.number, reports.events, Int32(Reports.capacity), timeout)))
    }

    /// What one wait brought.
    struct Reports: ~Copyable {
        /// Reports taken at once.
        fileprivate static let capacity = 256

        fileprivate let events: UnsafeMutablePointer<clinux_event> = .allocate(capacity: capacity)
        fileprivate(set) var count = 0

        deinit {
            events.deallocate()
        }

        func token(_ index: Int) -> UInt64 { events[index].token }

        func readiness(_ index: Int) -> Readiness { Readiness(rawValue: events[index].events) }
    }
}

/// What epoll says about a descriptor.
struct Readiness: OptionSet {
    let rawValue: UInt32

    static let readable = Readiness(rawValue: clinux_event_in)
    static let writable = Readiness(rawValue: clinux_event_out)
    /// The peer will send no more, though it may still read.
    static let peerClosed = Readiness(rawValue: clinux_event_hangup_read)
    /// The connection is gone in both directions.
    static let broken: Readiness = [Readiness(rawValue: clinux_event_hangup), Readiness(rawValue: clinux_event_error)]
}
