internal import Digests
internal import Fetch
internal import HTTP
internal import Renditions
internal import Store
internal import SystemIO

/// Receives an animation that is the body of a request.
///
/// Used by one connection's event loop thread only.
final class UploadSink: HTTPBodySink {
    /// ``UploadedFile`` enforces the limit, so that the refusal names it.
    let limit = Int.max
    private let respond: @Sendable (SourceFile) async -> HTTPResponse
    private var file: UploadedFile

    /// - Parameters:
    ///   - limit: The size limit of the file in bytes.
    ///   - reservation: Reserves the memory of the bytes.
    init(limit: Int, reservation: UploadReservation, respond: @escaping @Sendable (SourceFile) async -> HTTPResponse) {
        file = UploadedFile(limit: limit, reservation)
        self.respond = respond
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
        try translating(try file.append(bytes), to: HTTPBodyRefusal.init(upload:))
    }

    func finish() -> HTTPReply {
        do throws(Problem) {
            let source = try file.finish()
            let respond = respond
            return .later { await respond(source) }
        } catch {
            return .now(ProblemDocument.response(error, isStorable: false))
        }
    }

    func abort() {
        file.discard()
    }
}

/// An animation that arrives in the body of a request. Its bytes are written to a memory file, hashed, and recognized as they arrive.
///
/// Used by one thread at a time.
struct UploadedFile: ~Copyable {
    private var file: MemoryFile?
    private var hash = SHA256()
    private var start: [UInt8] = []
    private(set) var count = 0
    /// Whether the first bytes begin an animation.
    private var isSource = false
    private let limit: Int
    private let reservation: UploadReservation

    /// - Parameters:
    ///   - limit: The size limit in bytes.
    ///   - reservation: Reserves the memory of the bytes as they arrive.
    init(limit: Int, _ reservation: UploadReservation) {
        self.limit = limit
        self.reservation = reservation
    }

    /// Appends the next bytes.
    ///
    /// - Throws: ``Problem`` as soon as the bytes cannot be an animation or are too many, or if no memory is available for them.
    mutating func append(_ bytes: UnsafeRawBufferPointer) throws(Problem) {
        guard count + bytes.count <= limit else { throw .uploadTooLarge(limit: limit) }
        if !isSource {
            start.append(contentsOf: bytes.prefix(ContentSniffer.sufficient - start.count))
            switch ContentSniffer.judge(start, isWhole: false) {
            case .source: isSource = true
            case .notAnAnimation(let kind): throw Self.notAnAnimation(kind)
            case .undecided: break
            }
        }
        try reservation.reserve(bytes.count)
        do throws(SystemError) {
            if file == nil { file = try MemoryFile(name: "gifreel-upload") }
            try file?.append(bytes)
        } catch {
            throw reservation.refused(by: error)
        }
        hash.update(bytes)
        count += bytes.count
    }

    /// Releases the bytes of an upload that will not be completed.
    mutating func discard() {
        file = nil
    }

    /// Returns the complete file, sealed against changes.
    mutating func finish() throws(Problem) -> SourceFile {
        if case .notAnAnimation(let kind) = ContentSniffer.judge(start, isWhole: true) { throw Self.notAnAnimation(kind) }
        guard let file = file.take(), let digest = SourceDigest(bytes: hash.finalize()) else {
            throw Self.notAnAnimation(.empty)
        }
        do throws(SystemError) {
            return SourceFile(bytes: try file.seal(), count: count, digest: digest)
        } catch {
            throw reservation.refused(by: error)
        }
    }

    private static func notAnAnimation(_ kind: ContentKind) -> Problem {
        // Clients of other services send the URL of a GIF in the body.
        let hint = kind == .text || kind == .json ? " The URL of a GIF is requested with GET." : ""
        return Problem(415, "not_an_animation", kind.sentence("The file") + hint)
    }
}

/// Collects a request body in memory.
final class CollectingSink: HTTPBodySink {
    let limit: Int
    private let respond: @Sendable ([UInt8]) async throws(Problem) -> HTTPResponse
    private let reservation: UploadReservation?
    private var bytes: [UInt8] = []

    /// - Parameter reservation: Counts the bytes, and is held until the response is ready; nil for a body that is not counted.
    init(
        limit: Int, reservation: UploadReservation? = nil,
        respond: @escaping @Sendable ([UInt8]) async throws(Problem) -> HTTPResponse
    ) {
        self.limit = limit
        self.reservation = reservation
        self.respond = respond
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
        try translating(try reservation?.reserve(bytes.count), to: HTTPBodyRefusal.init(upload:))
        self.bytes.append(contentsOf: bytes)
    }

    func finish() -> HTTPReply {
        let (body, respond, reservation) = (bytes, respond, reservation)
        bytes = []
        return .attempt { () throws(Problem) in
            defer { withExtendedLifetime(reservation) {} }
            return try await respond(body)
        }
    }

    func abort() {
        bytes = []
    }
}

extension HTTPBodyRefusal {
    /// Refuses an upload. No cache may store the response.
    init(upload problem: Problem) {
        self.init(ProblemDocument.response(problem, isStorable: false))
    }
}
