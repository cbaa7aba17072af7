internal import CLinux

/// One thread's share of the server: its listener, its connections, and all that happens to them.
///
/// It is made on its thread and never leaves it, which is why nothing here is locked; other threads reach it through its
/// ``LoopMailbox``. This file holds the loop itself; what is done for a connection stands in the extensions, in the order
/// in which it happens: accepting, reading, replying, answering, sending. ``takeTurns(_:)`` does that for many at once.
final class EventLoop {
    let settings: LoopSettings
    let mailbox: LoopMailbox
    let counters: LoopCounters
    let poller: Poller

    var listeners: [Listener]
    /// Whether new connections wait in the backlog, because there is no room or no descriptor for them.
    var isAcceptingPaused = false
    var acceptPace = AcceptPace()
    /// Counts the turns of the loop.
    private(set) var turn: UInt64 = 0
    let connections = ConnectionTable()
    /// Connections whose turn ended before their work did.
    private var queued: [Connection] = []

    let clock = LoopClock()
    let input: InputBuffer
    /// Requests that have arrived and are not answered yet.
    let arrivals: Arrivals
    let output = OutputBuffer(capacity: 64 * 1024)
    let staged = ReusedList<StagedAnswer>(capacity: 64)
    /// What the access log will say of the answers that are staged.
    let stagedTexts = OutputBuffer(capacity: 16 * 1024)
    /// A head whose storage the next request uses.
    var spareHead = RequestHead()
    var requestIDs = RequestIDGenerator()
    let recorder: AccessRecorder?

    /// How busy the loop is, which decides how the system schedules its thread.
    var utilization: LoopUtilization
    /// Whether nobody else has decided that before.
    let hasDefaultScheduling: Bool

    private var nextSweep: UInt64 = 0
    /// When connections that are idle, and then all that are left, are closed; nil while the server takes requests.
    var drain: (idle: UInt64, all: UInt64)?

    /// Bytes a connection may move in a turn before the others have theirs.
    static let turnBudget = 2 * 1024 * 1024
    /// What a request counts for in that budget, whatever it moves.
    static let requestCost = 32 * 1024

    init(_ parts: LoopParts) {
        settings = parts.settings
        listeners = parts.takeListeners()
        mailbox = parts.mailbox
        counters = parts.counters
        poller = parts.poller
        recorder = parts.log.map { AccessRecorder($0) }
        // Always room for more than the largest head, so that a head that is too large is seen to be so.
        let capacity = max(64 * 1024, parts.settings.parser.limits.head + 4096)
        input = InputBuffer(capacity: capacity)
        arrivals = Arrivals(capacity: capacity)
        hasDefaultScheduling = clinux_has_default_scheduling() != 0
        utilization = LoopUtilization(now: clock.now, processorTime: clinux_thread_cpu_time())
    }

    /// Serves until the server is drained or stopped.
    func run() {
        var reports = Poller.Reports()
        while drain == nil || connections.count > 0 {
            poller.wait(&reports, timeout: timeout)
            clock.update()
            turn &+= 1
            let hasMessages = takeTurns(reports)
            if hasMessages { readMessages() }
            serveQueued()
            sendStaged()
            if clock.now >= nextSweep { sweep() }
            if turn % Self.turnsBetweenLooks == 0 { adaptScheduling() }
        }
        mailbox.close()
        recorder?.flush()
    }

    /// Milliseconds until there is something to do without a report.
    private var timeout: Int32 {
        if !queued.isEmpty { return 0 }
        // A loop that was busy has another look at itself before it sleeps.
        let isAsleep = connections.count == 0 && !isAcceptingPaused && !utilization.isBusy && recorder?.isEmpty ?? true
        if isAsleep { return -1 }
        return Int32(clamping: (nextSweep - min(nextSweep, clock.now)) / 1_000_000 + 1)
    }

    /// Gives a connection its turn.
    func serve(_ connection: Connection) {
        connection.budget = Self.turnBudget
        advance(connection)
    }

    /// Goes on with a connection as far as it can go without waiting, and not beyond its budget.
    func advance(_ connection: Connection) {
        while true {
            let hasMore =
                switch connection.phase {
                case .reading: readHeads(connection)
                case .receiving: receiveBody(connection)
                case .discarding: discardBody(connection)
                case .sending: connection.isWritable && flush(connection)
                case .lingering: linger(connection)
                case .staged, .waiting, .streaming, .closed: false
                }
            guard hasMore else { return }
            if connection.budget <= 0 {
                queue(connection)
                return
            }
        }
    }

    func queue(_ connection: Connection) {
        guard !connection.isQueued else { return }
        connection.isQueued = true
        queued.append(connection)
    }

    private func serveQueued() {
        guard !queued.isEmpty else { return }
        let turn = queued
        queued = []
        for connection in turn {
            connection.isQueued = false
            serve(connection)
        }
    }

    private func readMessages() {
        for message in mailbox.take() {
            switch message {
            case .answer(let token, let response): resume(token, with: response)
            case .chunk(let token, let bytes, let continuation): sendChunk(token, bytes, continuation)
            case .streamEnded(let token, let isWhole): endStream(token, isWhole: isWhole)
            case .drain: beginDraining(within: settings.drainTimeout)
            case .stop: beginDraining(within: 0)
            }
        }
    }

    /// Makes the next look at the deadlines come within 50 ms: somebody waits for what it may find.
    func sweepSoon() {
        nextSweep = min(nextSweep, clock.now + 50_000_000)
    }

    /// Looks at all deadlines. Walking over 8,000 connections takes some tens of microseconds, a few times a second: less
    /// than keeping them in order would cost the hot path.
    private func sweep() {
        nextSweep = clock.now + settings.sweepInterval
        if settings.admission.isContended || drain != nil { sweepSoon() }
        let now = clock.now
        for connection in connections.filter({ $0.deadline <= now }) { expire(connection) }
        if let drain { closeDrained(drain) }
        if settings.admission.isContended { makeRoom() }
        if isAcceptingPaused, drain == nil { resumeAccepting() }
        recorder?.flush()
        adaptScheduling()
    }
}
