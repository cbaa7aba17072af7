/// The turns of all connections that the poller reports, step by step: first what has arrived is read from all of them, then all
/// requests are answered, then all answers are sent. Each of the three, the kernel's two above all, fills the processor's
/// instruction cache; one after the other for each connection they would fetch it anew for each.
extension EventLoop {
    /// Gives all that the poller reports their turn. Returns whether there are messages for the loop.
    func takeTurns(_ reports: borrowing Poller.Reports) -> Bool {
        var hasMessages = false
        for index in 0..<reports.count {
            let token = reports.token(index)
            if token == LoopParts.mailboxToken {
                hasMessages = true
            } else if token < LoopParts.mailboxToken {
                // Accepting may close connections that seem idle.
                answerArrivals()
                accept(from: Int(token))
            } else if let connection = connections.find(ConnectionToken(encoded: token)) {
                report(reports.readiness(index), to: connection)
            }
        }
        answerArrivals()
        sendStaged()
        return hasMessages
    }

    private func report(_ readiness: Readiness, to connection: Connection) {
        if !readiness.isDisjoint(with: .broken) {
            close(connection)
            return
        }
        if readiness.contains(.readable) { connection.isReadable = true }
        if readiness.contains(.writable) { connection.isWritable = true }
        if readiness.contains(.peerClosed), !connection.peerHasClosed {
            connection.peerHasClosed = true
            connection.isReadable = true
            if connection.phase == .waiting || connection.phase == .streaming {
                beginProbing(connection)
                guard connection.phase != .closed else { return }
            }
        }
        if connection.phase == .reading, connection.unread.isEmpty {
            readAhead(connection)
        } else {
            serve(connection)
        }
    }

    /// Reads the start of a connection's next request.
    private func readAhead(_ connection: Connection) {
        if arrivals.isFull { answerArrivals() }
        switch receive(connection, into: arrivals.room) {
        case .bytes(let count): arrivals.append(connection, count)
        case .nothing: break
        case .end: close(connection)
        }
    }

    /// Answers what was read ahead. Most answers are staged.
    private func answerArrivals() {
        guard !arrivals.isEmpty else { return }
        arrivals.drain { connection, bytes in
            connection.budget = Self.turnBudget
            guard takeRequests(connection, from: bytes) else { return }
            switch connection.phase {
            case .staged: break
            case .reading where !connection.isReadable && connection.unread.isEmpty: break
            default: advance(connection)
            }
            if output.keptCount > StagedAnswer.byteLimit { sendStaged() }
        }
    }

    /// Leaves the answer, whose head is in ``output``, to ``sendStaged()``.
    func stage(_ connection: Connection, _ body: Segment?, _ headers: HTTPHeaders, _ head: RequestHead) {
        connection.phase = .staged
        let entry = stageEntry(connection, headers, head)
        staged.append(
            StagedAnswer(
                connection: connection, bytes: output.keep(), body: body, entry: entry, texts: stagedTexts.keep()))
    }

    /// Sends the answers that are staged, in the order in which they were made.
    func sendStaged() {
        guard !staged.isEmpty else { return }
        staged.drain(send)
        output.removeAll()
        stagedTexts.removeAll()
    }

    private func send(_ answer: StagedAnswer) {
        let connection = answer.connection
        guard connection.phase == .staged else { return }
        // To copy an optional calls a function even where there is nothing in it, as there is with most answers.
        var body: Segment?
        if let rest = answer.body { body = rest }
        let progress = sendHead(connection, output.kept(answer.bytes), with: &body, isFollowed: false)
        if let body, progress == .blocked { connection.outgoing.append(body) }
        settle(connection, progress) {
            record(answer, isComplete: $0)
        } draft: {
            answer.entry.map { AccessDraft(entry: $0, text: Array(stagedTexts.kept(answer.texts))) }
        }
        if connection.isReadable || !connection.unread.isEmpty { queue(connection) }
    }
}
