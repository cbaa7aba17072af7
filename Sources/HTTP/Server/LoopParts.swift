internal import Synchronization
internal import SystemIO

/// All that a loop is made of and that can fail to be had; put together before its thread starts.
final class LoopParts: Sendable {
    let settings: LoopSettings
    let log: AccessLog?
    let mailbox: LoopMailbox
    let counters = LoopCounters()
    let poller: Poller
    private let listeners: Mutex<[Listener]>

    /// Tokens below 2^32 name no connection: the mailbox has the last of them, the listeners have the first.
    static let mailboxToken: UInt64 = 0xFFFF_FFFF

    init(settings: LoopSettings, listeners: [Listener], log: AccessLog?) throws(SystemError) {
        self.settings = settings
        self.listeners = Mutex(listeners)
        self.log = log
        mailbox = try LoopMailbox()
        poller = try Poller()
        try poller.addReadable(mailbox.wakeup.number, token: Self.mailboxToken)
        try poller.add(listeners)
    }

    /// Gives the listeners to the loop, which alone decides when they close.
    func takeListeners() -> [Listener] {
        listeners.withLock { listeners in
            defer { listeners = [] }
            return listeners
        }
    }
}

extension Poller {
    /// Watches listeners; their tokens are their places.
    func add(_ listeners: [Listener]) throws(SystemError) {
        for (index, listener) in listeners.enumerated() {
            try addReadable(listener.descriptor.number, token: UInt64(index), shared: listener.isShared)
        }
    }

    func remove(_ listeners: [Listener]) {
        for listener in listeners { remove(listener.descriptor.number) }
    }
}
