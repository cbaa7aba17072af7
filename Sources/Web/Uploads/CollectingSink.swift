internal import HTTP

/// Collects a request body in memory.
final class CollectingSink: HTTPBodySink {
    let limit: Int
    private let respond: @Sendable ([UInt8]) async -> HTTPResponse
    private let reservation: UploadReservation?
    private var bytes: [UInt8] = []

    /// - Parameter reservation: Counts the bytes, and is held until the response is ready; nil for a body that is not counted.
    init(
        limit: Int, reservation: UploadReservation? = nil, respond: @escaping @Sendable ([UInt8]) async -> HTTPResponse
    ) {
        self.limit = limit
        self.reservation = reservation
        self.respond = respond
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
        do throws(Problem) {
            try reservation?.reserve(bytes.count)
        } catch {
            throw HTTPBodyRefusal(ProblemDocument.response(error))
        }
        self.bytes.append(contentsOf: bytes)
    }

    func finish() -> HTTPReply {
        let (body, respond, reservation) = (bytes, respond, reservation)
        bytes = []
        return .later {
            defer { withExtendedLifetime(reservation) {} }
            return await respond(body)
        }
    }

    func abort() {
        bytes = []
    }
}
