internal import Cache
internal import Crypto
internal import Fetch
internal import Renditions
internal import SystemIO

/// A GIF that arrives in a request's body: into a memfd, hashed and judged by its first bytes as it comes.
///
/// Used by one thread at a time.
struct UploadedFile: ~Copyable {
    private var file: MemoryFile?
    private var hash = SHA256()
    private var start: [UInt8] = []
    private(set) var count = 0
    private var isJudged = false
    private let reservation: UploadReservation

    /// - Parameter reservation: Memory for the bytes is reserved from it as they arrive.
    init(_ reservation: UploadReservation) {
        self.reservation = reservation
    }

    /// Takes the next bytes.
    ///
    /// - Throws: ``Problem`` as soon as the bytes are known to be no GIF, or where there is no memory for them.
    mutating func append(_ bytes: UnsafeRawBufferPointer) throws(Problem) {
        if !isJudged {
            start.append(contentsOf: bytes.prefix(ContentSniffer.sufficient - start.count))
            switch ContentSniffer.judge(start, isWhole: false) {
            case .gif: isJudged = true
            case .notAGIF(let kind): throw Self.notAGIF(kind)
            case .undecided: break
            }
        }
        try reservation.reserve(bytes.count)
        do throws(SystemError) {
            if file == nil { file = try MemoryFile(name: "gifreel-upload") }
            try file?.append(bytes)
        } catch {
            throw Self.noMemory(error)
        }
        hash.update(bufferPointer: bytes)
        count += bytes.count
    }

    /// Releases the bytes of an upload that will not be complete.
    mutating func discard() {
        file = nil
    }

    /// The whole file, which nobody can change any more.
    mutating func finish() throws(Problem) -> Source {
        if case .notAGIF(let kind) = ContentSniffer.judge(start, isWhole: true) { throw Self.notAGIF(kind) }
        guard let file = file.take(), let digest = SourceDigest(bytes: Array(hash.finalize())) else {
            throw Self.notAGIF(.empty)
        }
        do throws(SystemError) {
            return Source(bytes: try file.seal(), count: count, digest: digest)
        } catch {
            throw Self.noMemory(error)
        }
    }

    private static func noMemory(_ error: SystemError) -> Problem {
        var problem = Problem.overloaded
        problem.cause = error.description
        return problem
    }

    private static func notAGIF(_ kind: ContentKind) -> Problem {
        Problem(415, "not_a_gif", "The file is \(kind.phrase).")
    }
}
