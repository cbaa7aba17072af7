import Glibc
import SystemIO
import Testing

@testable import HTTP

@Suite("Connections are found by their tokens") struct ConnectionTableTests {
    @Test func tokenDistinguishesAReusedDescriptor() {
        let table = ConnectionTable()
        let number = dup(0)
        #expect(number >= 0)
        let earlier = ConnectionToken(descriptor: number, generation: table.nextGeneration())
        let connection = Connection(
            socket: OwnedDescriptor(taking: number), generation: table.nextGeneration(), peer: nil)
        #expect(table.find(connection.token) == nil)
        table.insert(connection)
        #expect(table.find(connection.token) === connection)
        #expect(table.find(earlier) == nil)
        #expect(table.find(ConnectionToken(descriptor: 1 << 20, generation: 1)) == nil)
        #expect(table.count == 1)
        table.remove(connection.token)
        #expect(table.find(connection.token) == nil)
        #expect(table.count == 0)
    }

    @Test func encodedTokensRoundTrip() {
        for token in [ConnectionToken(descriptor: 0, generation: 1), ConnectionToken(descriptor: 70000, generation: .max)] {
            #expect(ConnectionToken(encoded: token.encoded) == token)
            #expect(token.encoded > LoopParts.mailboxToken)
        }
    }
}
