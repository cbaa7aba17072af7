internal import Cache
internal import Crypto
internal import Fetch
internal import HTTP
internal import SystemIO

/// Takes a GIF from a request's body: into a memfd, hashed and judged by its first bytes as it arrives.
///
/// Used by one connection's loop thread only.
final class UploadSink: HTTPBodySink {
    let limit: Int
    private let then: @Sendable (Source) async -> HTTPResponse
    private var file: MemoryFile?
    private var hash = SHA256()
    private var start: [UInt8] = []
    private var count = 0
    private var isJudged = false

    /// - Parameters:
    ///   - limit: Bytes.
    ///   - then: What becomes of the whole GIF.
    init(limit: Int, then: @escaping @Sendable (Source) async -> HTTPResponse) {
        self.limit = limit
        self.then = then
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
        if !isJudged {
            start.append(contentsOf: bytes.prefix(ContentSniffer.sufficient - start.count))
            switch ContentSniffer.judge(start, isWhole: false) {
            case .gif: isJudged = true
            case .notAGIF(let kind): throw HTTPBodyRefusal(ProblemDocument.response(Self.notAGIF(kind)))
            case .undecided: break
            }
        }
        if file == nil { file = try MemoryFile(name: "gifreel-upload") }
        try file?.append(bytes)
        hash.update(bufferPointer: bytes)
        count += bytes.count
    }

    func finish() -> HTTPReply {
        if case .notAGIF(let kind) = ContentSniffer.judge(start, isWhole: true) {
            return .now(ProblemDocument.response(Self.notAGIF(kind)))
        }
        do throws(SystemError) {
            guard let bytes = try file.take()?.seal(), let digest = SourceDigest(bytes: Array(hash.finalize())) else {
                return .now(ProblemDocument.response(Self.notAGIF(.empty)))
            }
            let source = Source(bytes: bytes, count: count, digest: digest)
            let then = then
            return .later { await then(source) }
        } catch {
            var problem = Problem.overloaded
            problem.cause = error.description
            return .now(ProblemDocument.response(problem))
        }
    }

    func abort() {
        file = nil
    }

    private static func notAGIF(_ kind: ContentKind) -> Problem {
        Problem(415, "not_a_gif", "The body is \(kind.phrase).")
    }
}
