import Glibc
import Testing

@testable import HTTP

@Suite("Input is read before a connection that has ended is closed") struct LingeringTests {
    @Test func hangUpAfterTheLastResponseLeavesNoInputUnread() throws {
        let driver = ConnectionDriver(
            settings: loopSettings(), mailbox: try LoopMailbox(), connections: ConnectionTable(), clock: LoopClock(),
            log: nil)
        let pair = try SocketPair(sendBuffer: 1 << 20)
        driver.start(pair.connection)
        try pair.send(Array("GET\r\n\r\n".utf8))
        driver.report(.readable, to: pair.connection)
        driver.serveArrivals()
        #expect(String(decoding: pair.readAll(), as: UTF8.self).hasPrefix("HTTP/1.1 400 "))
        #expect(pair.connection.phase == .lingering)

        pair.connection.deadline = 1
        try pair.send([UInt8](repeating: 1, count: 1000))
        driver.report(.readable, to: pair.connection)
        driver.serveArrivals()
        #expect(pair.connection.deadline > 1, "a slow upload would be reset before a proxy reads the response")
        pair.finishSending()
        driver.report([.readable, .peerClosed, .broken], to: pair.connection)
        #expect(pair.connection.phase == .closed)
        // The kernel resets a connection that is closed while it has input (RFC 1122 section 4.2.2.13).
        var byte: UInt8 = 0
        let unread = recv(pair.connection.token.descriptor, &byte, 1, 0)
        #expect(unread == 0)
    }

    @Test func hangUpBeforeTheLastResponseClosesTheConnection() throws {
        let driver = ConnectionDriver(
            settings: loopSettings(), mailbox: try LoopMailbox(), connections: ConnectionTable(), clock: LoopClock(),
            log: nil)
        let pair = try SocketPair()
        driver.start(pair.connection)
        driver.report(.broken, to: pair.connection)
        #expect(pair.connection.phase == .closed)
    }
}
