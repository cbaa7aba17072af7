internal import CLinux
internal import Glibc
internal import SystemIO

/// Wakes a thread out of its poller, from any other thread (eventfd(2)).
final class Wakeup: Sendable {
    private let descriptor: SharedDescriptor

    init() throws(SystemError) {
        let number = clinux_eventfd()
        guard number >= 0 else { throw .last("eventfd") }
        descriptor = SharedDescriptor(OwnedDescriptor(taking: number))
    }

    /// What the poller watches.
    var number: Int32 { descriptor.number }

    /// Makes the descriptor readable. It can only fail when it is so already.
    func signal() {
        var one: UInt64 = 1
        _ = write(descriptor.number, &one, 8)
    }

    /// Makes the descriptor unreadable until the next signal.
    func clear() {
        var count: UInt64 = 0
        _ = read(descriptor.number, &count, 8)
    }
}
