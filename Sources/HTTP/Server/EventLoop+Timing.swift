internal import CLinux

/// What happens when a connection's time is over.
extension EventLoop {
    /// How long the rest of what a client sends is read after its answer, so that no reset destroys the answer.
    static let lingerTime: UInt64 = 3_000_000_000

    func expire(_ connection: Connection) {
        connection.deadline = .max
        switch connection.phase {
        case .reading:
            if connection.unread.isEmpty {
                close(connection)
            } else {
                refuse(connection, .requestTimeout, RequestHead())
            }
        case .receiving:
            let count = connection.reception?.count ?? 0
            let isLate = clock.now >= connection.reception?.deadline ?? .max
            guard isLate || count - connection.rateMark < settings.bodyBytesPerWindow else {
                watchRate(connection, moved: count)
                return
            }
            abandonReception(connection)
            refuseKept(connection, .requestTimeout)
        case .sending:
            let moved = acknowledgedBytes(connection)
            guard moved - connection.rateMark < settings.bodyBytesPerWindow else {
                watchRate(connection, moved: moved)
                return
            }
            // What the kernel still holds would otherwise be offered to the silent client for minutes more.
            _ = clinux_reset_on_close(connection.token.descriptor)
            close(connection)
        case .waiting, .streaming: probe(connection)
        case .staged: break
        case .discarding, .lingering: close(connection)
        case .closed: break
        }
    }

    /// Begins to measure the rate of a body, or a new window of it.
    func watchRate(_ connection: Connection, moved: Int) {
        connection.rateMark = moved
        let end = settings.bodyBytesPerWindow > 0 ? clock.now + settings.bodyRateWindow : .max
        connection.deadline = min(end, connection.reception?.deadline ?? .max)
    }

    /// Bytes that have reached the client. What the kernel has taken is no measure: its buffers hold megabytes, and it
    /// takes more only after a third of them is free.
    func acknowledgedBytes(_ connection: Connection) -> Int {
        connection.sentBytes - max(0, Int(clinux_unacknowledged(connection.token.descriptor)))
    }
}
