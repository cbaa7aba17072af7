internal import Fetch
package import HTTP
internal import Renditions
internal import SystemIO

/// Receives a GIF in a form (`multipart/form-data`, RFC 7578) with one file and, as its other fields, the rendition's options.
///
/// Used by one connection's event loop thread only.
package final class FormSink: HTTPBodySink {
    /// The size limit, in bytes, of everything in a form except the file: delimiters, heads and the other fields.
    package static let overhead = 64 << 10
    /// The limit on the number of fields besides the file.
    private static let maxFields = 32
    /// The size limit of a field's value in bytes.
    private static let maxValueLength = 2048

    package let limit: Int
    private let authorize: ([QueryItem]) throws(Problem) -> @Sendable (SourceFile) async -> HTTPResponse
    private var parser: MultipartParser
    private var file: UploadedFile
    private var hasFile = false
    /// Whether a file with content has ended.
    private var isFileComplete = false
    private var fields: [QueryItem] = []
    private var part: MultipartPart?
    private var isFile = false
    private var value: [UInt8] = []

    /// - Parameters:
    ///   - limit: The size limit of the file in bytes.
    ///   - authorize: Checks the request with the form's fields, and returns the function that responds to the GIF.
    init(
        parser: MultipartParser, limit: Int, reservation: UploadReservation,
        authorize: @escaping ([QueryItem]) throws(Problem) -> @Sendable (SourceFile) async -> HTTPResponse
    ) {
        self.parser = parser
        file = UploadedFile(limit: limit, reservation)
        self.limit = limit + Self.overhead
        self.authorize = authorize
    }

    package func write(_ bytes: UnsafeRawBufferPointer) throws {
        try translating(try read(bytes), to: HTTPBodyRefusal.init(upload:))
    }

    package func finish() -> HTTPReply {
        do throws(Problem) {
            guard parser.isComplete else { throw .badRequest("The form is incomplete.") }
            let respond = try authorize(fields)
            guard hasFile else { throw .badRequest("The form has no file.") }
            let source = try file.finish()
            return .later { await respond(source) }
        } catch {
            return .now(ProblemDocument.response(error, isStorable: false))
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
            case .delimiterPrefix(let count): try takeDelimiterPrefix(count)
            case .partEnd: try end()
            }
        }
    }

    private func begin(_ next: MultipartPart) throws(Problem) {
        part = next
        isFile = next.isFile
        if isFile {
            hasFile = true
        } else if fields.count == Self.maxFields {
            throw .badRequest("The form has too many fields.")
        }
    }

    private func take(_ bytes: UnsafeRawBufferPointer) throws(Problem) {
        guard let part else { return }
        if isFile { return try appendToFile(bytes) }
        // A part without a file name that begins like an animation is treated as the file (RFC 7578 section 4.2: the name is
        // optional).
        let start = value.prefix(ContentSniffer.sufficient) + bytes.prefix(max(0, ContentSniffer.sufficient - value.count))
        if case .source = ContentSniffer.judge(start, isWhole: false) {
            hasFile = true
            isFile = true
            defer { value = [] }
            let kept = value
            try kept.span.bytes.withUnsafeBytes(appendToFile)
            return try appendToFile(bytes)
        }
        guard value.count + bytes.count <= Self.maxValueLength else {
            throw .badOption(part.name, "is too long")
        }
        value.append(contentsOf: bytes)
    }

    private func appendToFile(_ bytes: UnsafeRawBufferPointer) throws(Problem) {
        guard !isFileComplete || bytes.isEmpty else { throw .badRequest("The form has more than one file.") }
        try file.append(bytes)
    }

    /// Handles bytes that matched the beginning of a delimiter but are content.
    private func takeDelimiterPrefix(_ count: Int) throws(Problem) {
        let prefix = parser.delimiter.prefix(count)
        try prefix.span.bytes.withUnsafeBytes(take)
    }

    /// Ends a part. A field without a value is ignored, and so is a file without content beside another one: browsers also send
    /// fields that were left empty.
    private func end() throws(Problem) {
        guard let ended = part else { return }
        part = nil
        defer { value = [] }
        if isFile { isFileComplete = file.count > 0 }
        guard !isFile, !value.isEmpty, ended.name != "_charset_" else { return }
        guard let text = String(validating: value, as: UTF8.self) else {
            throw .badOption(ended.name, "is neither text nor a file, which has a file name")
        }
        fields.append(QueryItem(name: ended.name, value: text))
    }
}
