package import HTTP
internal import Renditions

/// Takes the GIF out of a form that a browser sends (`multipart/form-data`, RFC 7578): one file, and beside it the
/// rendition's options as the form's other fields.
///
/// Used by one connection's loop thread only.
package final class FormSink: HTTPBodySink {
    /// Bytes of a form that are not the file's: delimiters, heads and the other fields.
    package static let overhead = 64 << 10
    /// Fields of a form beside the file.
    private static let mostFields = 32
    /// Bytes of a field's value.
    private static let longestValue = 2048

    package let limit: Int
    private let fileLimit: Int
    private let then: ([QueryItem]) throws(Problem) -> @Sendable (Source) async -> HTTPResponse
    private var parser: MultipartParser
    private var file: UploadedFile
    private var hasFile = false
    private var fields: [QueryItem] = []
    private var part: MultipartPart?
    private var value: [UInt8] = []

    /// - Parameters:
    ///   - parser: Set up with the form's boundary.
    ///   - limit: Bytes of the file.
    ///   - reservation: Memory for them.
    ///   - then: Decides by the form's fields what becomes of the GIF.
    init(
        parser: MultipartParser, limit: Int, reservation: UploadReservation,
        then: @escaping ([QueryItem]) throws(Problem) -> @Sendable (Source) async -> HTTPResponse
    ) {
        self.parser = parser
        fileLimit = limit
        file = UploadedFile(reservation)
        self.limit = limit + Self.overhead
        self.then = then
    }

    package func write(_ bytes: UnsafeRawBufferPointer) throws {
        do throws(Problem) {
            try read(bytes)
        } catch {
            throw HTTPBodyRefusal(ProblemDocument.response(error))
        }
    }

    package func finish() -> HTTPReply {
        do throws(Problem) {
            guard parser.isWhole else { throw .badRequest("The form breaks off.") }
            guard hasFile else { throw .badRequest("The form has no file.") }
            let then = try then(fields)
            let source = try file.finish()
            return .later { await then(source) }
        } catch {
            return .now(ProblemDocument.response(error))
        }
    }

    package func abort() {
        file.discard()
    }

    // MARK: Parts

    private func read(_ bytes: UnsafeRawBufferPointer) throws(Problem) {
        var position = 0
        while true {
            switch try parser.next(bytes, at: &position) {
            case .needsMore, .end: return
            case .part(let next): try begin(next)
            case .data(let range): try take(UnsafeRawBufferPointer(rebasing: bytes[range]))
            case .withheld(let count): try takeDelimiter(count)
            case .partEnd: try end()
            }
        }
    }

    private func begin(_ next: MultipartPart) throws(Problem) {
        part = next
        if next.isFile {
            guard !hasFile else { throw .badRequest("The form has more than one file.") }
            hasFile = true
        } else if fields.count == Self.mostFields {
            throw .badRequest("The form has too many fields.")
        }
    }

    private func take(_ bytes: UnsafeRawBufferPointer) throws(Problem) {
        guard let part else { return }
        if part.isFile {
            guard file.count + bytes.count <= fileLimit else {
                let error = HTTPProtocolError.contentTooLarge
                throw Problem(error.status, error.code, error.sentence)
            }
            return try file.append(bytes)
        }
        guard value.count + bytes.count <= Self.longestValue else {
            throw .badOption(part.name, "is too long")
        }
        value.append(contentsOf: bytes)
    }

    /// What looked like the beginning of a delimiter, and was content.
    private func takeDelimiter(_ count: Int) throws(Problem) {
        let problem: Problem? = parser.delimiter.withUnsafeBytes { bytes in
            do throws(Problem) {
                try take(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
                return nil
            } catch {
                return error
            }
        }
        if let problem { throw problem }
    }

    /// A field without a value is one that nobody filled in: browsers send those too.
    private func end() throws(Problem) {
        guard let ended = part else { return }
        part = nil
        defer { value = [] }
        guard !ended.isFile, !value.isEmpty, ended.name != "_charset_" else { return }
        guard let text = String(validating: value, as: UTF8.self) else {
            throw .badOption(ended.name, "is no UTF-8 text")
        }
        fields.append(QueryItem(name: ended.name, value: text))
    }
}
