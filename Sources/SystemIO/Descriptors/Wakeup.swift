internal import CLinux
internal import Glibc

/// Wakes a thread that waits for descriptors (eventfd(2)). Any thread.
package final class Wakeup: Sendable {
    private let descriptor: SharedDescriptor

    package init() throws(SystemError) {
        let number = clinux_eventfd()
        guard number >= 0 else { throw .last("eventfd") }
        descriptor = SharedDescriptor(OwnedDescriptor(taking: number))
    }

    /// The descriptor to wait for.
    package var number: Int32 { descriptor.number }

    /// Makes the descriptor readable. Fails only if it is readable already.
    package func signal() {
        var one: UInt64 = 1
        _ = write(descriptor.number, &one, 8)
    }

    /// Makes the descriptor unreadable until the next signal.
    package func clear() {
        var count: UInt64 = 0
        _ = read(descriptor.number, &count, 8)
    }
}
