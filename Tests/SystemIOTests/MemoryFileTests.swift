import CLinux
import Glibc
import SystemIO
import Testing

@Suite("A sealed memory file never changes") struct MemoryFileTests {
    @Test func aSealedFileHasItsContentsAndRefusesWrites() throws {
        var file = try MemoryFile(name: "test")
        try Array("GIF".utf8).withUnsafeBytes { try file.append($0) }
        try Array("89a".utf8).withUnsafeBytes { try file.append($0) }
        #expect(file.count == 6)
        let sealed = try file.seal()
        #expect(try sealed.readAll() == Array("GIF89a".utf8))
        #expect(clinux_memfd_is_sealed(sealed.number) != 0)
        #expect(write(sealed.number, "x", 1) == -1)
    }

    @Test func aReadBeyondTheEndReturnsTheRest() throws {
        var file = try MemoryFile(name: "test")
        try [UInt8](0..<10).withUnsafeBytes { try file.append($0) }
        let sealed = try file.seal()
        var buffer = [UInt8](repeating: 0xff, count: 8)
        let count = try buffer.withUnsafeMutableBytes { try sealed.read(into: $0, at: 6) }
        #expect(count == 4)
        #expect(Array(buffer.prefix(4)) == [6, 7, 8, 9])
    }

    @Test func aDescriptorIsClosedWithItsLastOwner() throws {
        var number: Int32 = -1
        do {
            let sealed = try MemoryFile(name: "test").seal()
            number = sealed.number
            #expect(fcntl(number, F_GETFD) >= 0)
        }
        // Another test may have taken the number since; then it is not this file any more.
        #expect(fcntl(number, F_GETFD) == -1 || clinux_memfd_is_sealed(number) == 0)
    }
}
