import Glibc
import SystemIO
import TestSupport
import Testing

@testable import HTTP

@Suite("A mailbox delivers messages in order and wakes its loop") struct LoopMailboxTests {
    private static let token = ConnectionToken(descriptor: 5, generation: 1)

    private func isReadable(_ number: Int32) -> Bool {
        var interest = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
        return poll(&interest, 1, 0) == 1
    }

    private func status(_ message: LoopMailbox.Message) -> Int? {
        if case .response(Self.token, let response) = message { response.status } else { nil }
    }

    @Test func messagesAreTakenOnceAndInOrder() throws {
        let mailbox = try LoopMailbox()
        #expect(mailbox.take().isEmpty)
        for status in 200..<210 { #expect(mailbox.post(.response(Self.token, HTTPResponse(status: status)))) }
        #expect(mailbox.take().map(status) == (200..<210).map { $0 })
        #expect(mailbox.take().isEmpty)
    }

    @Test func postedMessageWakesTheLoopUntilItIsTaken() throws {
        let mailbox = try LoopMailbox()
        #expect(!isReadable(mailbox.wakeup.number))
        for _ in 0..<3 {
            mailbox.post(.drain)
            mailbox.post(.stop)
            #expect(isReadable(mailbox.wakeup.number))
            #expect(mailbox.take().count == 2)
            #expect(!isReadable(mailbox.wakeup.number))
        }
    }

    @Test func closedMailboxAcceptsNothing() throws {
        let mailbox = try LoopMailbox()
        mailbox.close()
        #expect(!mailbox.post(.response(Self.token, HTTPResponse(status: 200))))
        #expect(mailbox.take().isEmpty)
    }

    @Test func writerOfABodyLearnsThatItsLoopHasEnded() async throws {
        let mailbox = try LoopMailbox()
        let writer = HTTPBodyWriter(mailbox: mailbox, token: Self.token)
        let queued = Task { try await writer.write([1]) }
        try await waitUntil("the piece to be queued") { isReadable(mailbox.wakeup.number) }
        mailbox.close()
        await #expect(throws: HTTPClientLeft.self) { try await queued.value }
        await #expect(throws: HTTPClientLeft.self) { try await writer.write([2]) }
        try await writer.write([])
    }
}
