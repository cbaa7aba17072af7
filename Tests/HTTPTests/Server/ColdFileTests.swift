import CLinux
import Glibc
import SystemIO
import TestSupport
import Testing

@testable import HTTP

@Suite("No loop waits for the disk") struct ColdFileTests {
    /// A file on a disk whose bytes the page cache has dropped; nil if the file system keeps them, as one in memory does.
    private static func coldFile(_ bytes: [UInt8]) throws -> SharedDescriptor? {
        let path = "/var/tmp/http-tests-\(getpid())-\(UInt32.random(in: .min ... .max))"
        let number = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw SystemError.last("open") }
        unlink(path)
        let file = SharedDescriptor(OwnedDescriptor(taking: number))
        try bytes.withUnsafeBytes { try DescriptorIO.write($0, to: number) }
        guard fsync(number) == 0 else { throw SystemError.last("fsync") }
        posix_fadvise(number, 0, 0, POSIX_FADV_DONTNEED)
        return clinux_is_in_page_cache(number, 0, min(bytes.count, 1 << 20)) == 0 ? file : nil
    }

    private static let isPossible = ((try? coldFile([UInt8](repeating: 1, count: 100_000))) ?? nil) != nil

    private static func resource(_ file: SharedDescriptor, _ content: [UInt8]) -> HTTPResource {
        HTTPResource(file: file, length: content.count, contentType: "video/mp4", entityTag: "\"x\"", lastModified: 0)
    }

    private static func content(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 % 251) } }

    @Test(.enabled(if: isPossible, "the file system of /var/tmp keeps all pages"), arguments: [5000, 100_000, 3_500_000])
    func aColdFileIsReadByAThreadAndSentWhole(_ count: Int) async throws {
        let content = Self.content(count)
        let file = try #require(try Self.coldFile(content))
        let resource = Self.resource(file, content)
        #expect(resource.isUnread == (count <= HTTPResource.inMemoryLimit))
        try await withServer(ClosureHandler { _ in .now(HTTPResponse(resource)) }) { server, port in
            try await onThread {
                let client = try RawClient(port: port)
                for _ in 0..<2 {
                    #expect(try client.request("GET / HTTP/1.1\r\nHost: h\r\n\r\n").body == content)
                }
                let part = try client.request("GET / HTTP/1.1\r\nHost: h\r\nRange: bytes=1000-1999\r\n\r\n")
                #expect(part.status == 206 && part.body == Array(content[1000..<2000]))
            }
            let pieces = (count + ServedFile.pieceSize - 1) / ServedFile.pieceSize
            // The kernel reads ahead, so that later pieces may be in the page cache.
            #expect((1...pieces).contains(server.counters.loadedPieces))
        }
    }

    @Test(.enabled(if: isPossible, "the file system of /var/tmp keeps all pages"))
    func pipelinedRequestsForAColdFileAreAnsweredInOrder() async throws {
        let content = Self.content(100_000)
        let file = try #require(try Self.coldFile(content))
        let resource = Self.resource(file, content)
        let handler = ClosureHandler { request in
            request.target == "/file"
                ? .now(HTTPResponse(resource)) : .now(HTTPResponse(status: 200, contentType: "text/plain", text: "other"))
        }
        try await withServer(handler) { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                let (file, other) = ("GET /file HTTP/1.1\r\nHost: h\r\n\r\n", "GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
                try client.send(file + other + file + other)
                for _ in 0..<2 {
                    #expect(try client.response().body == content)
                    #expect(try client.response().body == Array("other".utf8))
                }
            }
        }
    }

    @Test(.enabled(if: isPossible, "the file system of /var/tmp keeps all pages"))
    func aSmallFileThatWasLoadedIsReadIntoMemory() throws {
        let content = Self.content(5000)
        let file = try #require(try Self.coldFile(content))
        #expect(Self.resource(file, content).isUnread)
        ServedFile(file, length: content.count).load(0..<content.count)
        #expect(!Self.resource(file, content).isUnread)
    }

    @Test func aFileInMemoryIsInThePageCache() throws {
        let content = Self.content(2_000_000)
        let file = ServedFile(try temporaryFile(content), length: content.count)
        #expect(file.isInPageCache(0..<(1 << 20)) && file.isInPageCache(1_999_000..<2_000_000) && file.isInPageCache(5..<5))
        #expect(!Self.resource(try temporaryFile(Self.content(5000)), Self.content(5000)).isUnread)
    }
}
