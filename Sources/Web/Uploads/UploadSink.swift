internal import HTTP
internal import Renditions

/// Takes a GIF that is a request's whole body.
///
/// Used by one connection's loop thread only.
final class UploadSink: HTTPBodySink {
    let limit: Int
    private let then: @Sendable (Source) async -> HTTPResponse
    private var file: UploadedFile

    /// - Parameters:
    ///   - limit: Bytes.
    ///   - reservation: Memory for the bytes.
    ///   - then: Answers with the whole GIF.
    init(limit: Int, reservation: UploadReservation, then: @escaping @Sendable (Source) async -> HTTPResponse) {
        self.limit = limit
        file = UploadedFile(reservation)
        self.then = then
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
        do throws(Problem) {
            try file.append(bytes)
        } catch {
            throw HTTPBodyRefusal(ProblemDocument.response(error))
        }
    }

    func finish() -> HTTPReply {
        do throws(Problem) {
            let source = try file.finish()
            let then = then
            return .later { await then(source) }
        } catch {
            return .now(ProblemDocument.response(error))
        }
    }

    func abort() {
        file.discard()
    }
}
