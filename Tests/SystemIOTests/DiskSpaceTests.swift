import Glibc
import TestSupport
import Testing

@testable import SystemIO

@Suite("The space of a file system is read in one way") struct DiskSpaceTests {
    @Test func aPathAndAnOpenFileOfItHaveTheSameSpace() throws {
        let folder = try ScratchDirectory()
        let descriptor = OwnedDescriptor(taking: open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC))
        let (path, file) = (try DiskSpace(at: folder.path), try DiskSpace(of: descriptor.number))
        #expect(path.allBytes > 0 && path.allBytes == file.allBytes && path.allFiles == file.allFiles)
        #expect(path.freeBytes <= path.allBytes)
        #expect(throws: SystemError.self) { try DiskSpace(at: folder.path + "/missing") }
        #expect(throws: SystemError.self) { try DiskSpace(of: -1) }
    }

    @Test func bytesBeyondTheLargestNumberAreThatNumber() {
        #expect(DiskSpace.bytes(blocks: 10, ofSize: 4096) == 40_960)
        #expect(DiskSpace.bytes(blocks: 1 << 51, ofSize: 4096) == .max)
        #expect(DiskSpace.bytes(blocks: 1 << 62, ofSize: 4096) == .max)
    }
}
