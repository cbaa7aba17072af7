import Glibc
import SystemIO
import TestSupport
import Testing

@testable import HTTPClient

@Suite("A connection on which nothing arrives is ended") struct SocketTableTests {
    @Test(arguments: [true, false]) func aConnectionIsEndedIfItHasBeenSilentForLongEnough(isSilent: Bool) throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        try #require(number >= 0)
        defer { close(number) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(origin.port)).bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let localPort = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                let isConnected = connect(number, address, length) == 0 && getsockname(number, address, &length) == 0
                return isConnected ? IPAddress.port(address) : 0
            }
        }
        let table = SocketTable()
        table.insert(number)
        let remote = try #require(IPAddress("127.0.0.1"))
        table.end(
            localPort: localPort, remote: remote, remotePort: origin.port, silentFor: isSilent ? .zero : .seconds(3600))
        // The end of a connection can be read at once. The origin sends nothing, so there is nothing else to read.
        var byte: UInt8 = 0
        #expect(recv(number, &byte, 1, Int32(MSG_DONTWAIT)) == (isSilent ? 0 : -1))
    }
}
