import Glibc
import SystemIO
import TestSupport
import Testing

@testable import HTTP

@Suite("A streamed body is framed piece by piece") struct BodyStreamTests {
    private func text(_ segments: [Segment]) -> String {
        segments.map { segment in
            guard case .bytes(let bytes, let range) = segment else { return "" }
            return String(decoding: bytes[range], as: UTF8.self)
        }.joined()
    }

    @Test func piecesAreChunksUpToTheLastChunk() async {
        let stream = BodyStream(.chunked)
        var segments: [Segment] = []
        for piece in ["a", String(repeating: "b", count: 26)] {
            let isSent = await withCheckedContinuation { continuation in
                #expect(stream.append(Array(piece.utf8), continuation, to: &segments))
                stream.resume(isSent: true)
            }
            #expect(isSent)
        }
        #expect(!stream.hasEnded)
        #expect(stream.end(&segments))
        #expect(stream.hasEnded)
        #expect(text(segments) == "1\r\na\r\n1a\r\n\(String(repeating: "b", count: 26))\r\n0\r\n\r\n")
    }

    @Test func withoutChunksTheBytesAreSentAsTheyAre() async {
        let stream = BodyStream(.untilClose)
        var segments: [Segment] = []
        let isSent = await withCheckedContinuation { continuation in
            #expect(stream.append(Array("abc".utf8), continuation, to: &segments))
            stream.resume(isSent: false)
        }
        #expect(!isSent)
        #expect(stream.end(&segments))
        #expect(text(segments) == "abc")
    }

    @Test func aBodyOfDeclaredLengthIsNeitherLongerNorShorter() async {
        let stream = BodyStream(.counted(3))
        var segments: [Segment] = []
        let isSent = await withCheckedContinuation { continuation in
            #expect(stream.append(Array("ab".utf8), continuation, to: &segments))
            stream.resume(isSent: true)
        }
        #expect(isSent && !stream.end(&segments) && !stream.hasEnded)
        _ = await withCheckedContinuation { continuation in
            #expect(!stream.append(Array("cd".utf8), continuation, to: &segments))
            #expect(stream.append(Array("c".utf8), continuation, to: &segments))
            stream.resume(isSent: true)
        }
        #expect(stream.end(&segments) && stream.hasEnded && text(segments) == "abc")
    }

    @Test func theLengthDecidesTheFramingBeforeTheVersion() {
        #expect(BodyStream.Framing(length: 5, minorVersion: 0) == .counted(5))
        #expect(BodyStream.Framing(length: 5, minorVersion: 1) == .counted(5))
        #expect(BodyStream.Framing(length: nil, minorVersion: 1) == .chunked)
        #expect(BodyStream.Framing(length: nil, minorVersion: 0) == .untilClose)
        #expect(BodyStream(.untilClose).needsReset && !BodyStream(.chunked).needsReset && !BodyStream(.counted(1)).needsReset)
    }

    @Test func pieceIsRefusedWhileAnotherIsSent() async {
        let stream = BodyStream(.chunked)
        var segments: [Segment] = []
        _ = await withCheckedContinuation { first in
            #expect(stream.append([1], first, to: &segments))
            let count = segments.count
            #expect(!stream.append([2], first, to: &segments))
            #expect(segments.count == count)
            stream.resume(isSent: true)
        }
        // Without a waiting writer nothing happens.
        stream.resume(isSent: true)
    }

    @Test func taskPostsItsPiecesAndItsEnd() async throws {
        struct Broken: Error {}
        for fails in [false, true] {
            let mailbox = try LoopMailbox()
            let token = ConnectionToken(descriptor: 3, generation: 1)
            let task = BodyStream.start(
                { writer in
                    try await writer.write([1, 2])
                    if fails { throw Broken() }
                }, for: token, mailbox: mailbox)
            var ends: [Bool] = []
            try await waitUntil("the end of the body") {
                for message in mailbox.take() {
                    switch message {
                    case .chunk(token, let bytes, let continuation):
                        #expect(bytes == [1, 2])
                        continuation.resume(returning: true)
                    case .streamEnded(token, let isComplete): ends.append(isComplete)
                    default: Issue.record("another message")
                    }
                }
                return !ends.isEmpty
            }
            await task.value
            #expect(ends == [!fails])
        }
    }

    @Test func closedMailboxEndsTheWriter() async throws {
        let mailbox = try LoopMailbox()
        let writer = HTTPBodyWriter(mailbox: mailbox, token: ConnectionToken(descriptor: 3, generation: 1))
        let pending = Task { try await writer.write([1]) }
        try await waitUntil("the piece") {
            var watched = pollfd(fd: mailbox.wakeup.number, events: Int16(POLLIN), revents: 0)
            return poll(&watched, 1, 0) == 1
        }
        mailbox.close()
        await #expect(throws: HTTPClientLeft.self) { try await pending.value }
        await #expect(throws: HTTPClientLeft.self) { try await writer.write([2]) }
        // An empty piece is not sent, since an empty chunk would end the body.
        try await writer.write([])
    }

    @Test func messagesArriveInOrder() throws {
        let mailbox = try LoopMailbox()
        let tokens = (1...100).map { ConnectionToken(descriptor: 3, generation: $0) }
        for token in tokens { #expect(mailbox.post(.streamEnded(token, isComplete: true))) }
        let taken = mailbox.take().map { message in
            guard case .streamEnded(let token, _) = message else { return UInt32(0) }
            return token.generation
        }
        #expect(taken == tokens.map(\.generation))
        #expect(mailbox.take().isEmpty)
        mailbox.close()
        #expect(!mailbox.post(.drain))
    }
}
