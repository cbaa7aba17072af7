internal import CLinux
internal import SystemIO

/// An epoll instance. It passes tokens to the kernel instead of pointers, so that a report for a closed connection can be
/// distinguished from a report for its successor.
final class Poller: Sendable {
    private let descriptor: SharedDescriptor

    init() throws(SystemError) {
        let number = clinux_epoll_create()
        guard number >= 0 else { throw .last("epoll_create1") }
        descriptor = SharedDescriptor(OwnedDescriptor(taking: number))
    }

    /// Watches for input, output and hang-up, edge-triggered, so that a connection needs no further epoll_ctl calls. Returns
    /// false if the kernel refuses.
    func addConnection(_ number: Int32, token: UInt64) -> Bool {
        let interest = clinux_event_in | clinux_event_out | clinux_event_hangup_read | clinux_event_edge
        return clinux_epoll_add(descriptor.number, number, interest, token) == 0
    }

    /// Watches for input, level-triggered. A `shared` descriptor wakes only one poller.
    func addReadable(_ number: Int32, token: UInt64, shared: Bool = false) throws(SystemError) {
        let interest = clinux_event_in | (shared ? clinux_event_exclusive : 0)
        guard clinux_epoll_add(descriptor.number, number, interest, token) == 0 else { throw .last("epoll_ctl") }
    }

    func remove(_ number: Int32) {
        _ = clinux_epoll_remove(descriptor.number, number)
    }

    /// Waits up to `timeout` milliseconds (-1: indefinitely) for reports. A signal ends the wait without reports.
    func wait(_ reports: inout Reports, timeout: Int32) {
        reports.count = max(0, Int(clinux_epoll_wait(descriptor.number, reports.events, Int32(Reports.capacity), timeout)))
    }

    struct Reports: ~Copyable {
        /// The maximum number of reports per wait.
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

/// The readiness of a descriptor as reported by epoll.
struct Readiness: OptionSet {
    let rawValue: UInt32

    static let readable = Readiness(rawValue: clinux_event_in)
    static let writable = Readiness(rawValue: clinux_event_out)
    /// The peer has closed its sending half, but may still read.
    static let peerClosed = Readiness(rawValue: clinux_event_hangup_read)
    /// The connection is closed in both directions.
    static let broken: Readiness = [Readiness(rawValue: clinux_event_hangup), Readiness(rawValue: clinux_event_error)]
}
