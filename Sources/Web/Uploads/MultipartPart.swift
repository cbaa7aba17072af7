internal import HTTP

/// The head of one part of a form (RFC 7578 section 4).
struct MultipartPart: Equatable {
    /// The name of the form's field.
    let name: String
    /// Whether the part is a file: it has a file name, which may be empty. Browsers send an empty one if no file was selected.
    let isFile: Bool

    /// Parses the lines of a part's head, each with its CRLF.
    ///
    /// - Throws: ``Problem`` if the part has no name, or has a transfer encoding, which is deprecated (RFC 7578 section 4.7).
    init(head: UnsafeRawBufferPointer) throws(Problem) {
        var disposition: FieldElement?
        var rest = head
        while let line = rest.takeLine() {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else {
                throw .badRequest("A part of the form has a malformed head.")
            }
            let name = line.slice(0..<colon)
            let value = FieldElement(line.slice(colon + 1..<line.count))
            if name.equalsIgnoringCase("content-disposition") {
                disposition = value
            } else if name.equalsIgnoringCase("content-transfer-encoding") {
                let isIdentity = (["binary", "8bit", "7bit"] as [StaticString]).contains { value.value.equalsIgnoringCase($0) }
                guard isIdentity else {
                    throw .badRequest("A part of the form has a transfer encoding, which is not supported.")
                }
            }
        }
        guard let disposition, disposition.value.equalsIgnoringCase("form-data"),
            let name = disposition.parameter("name")?.unquoted
        else {
            throw .badRequest("A part of the form has no name.")
        }
        self.name = String(decoding: name, as: UTF8.self)
        isFile = disposition.parameter("filename") != nil || disposition.parameter("filename*") != nil
    }
}

extension UnsafeRawBufferPointer {
    /// Removes the first line and returns it without its CRLF; nil without a CRLF. A single CR or LF does not end a line.
    mutating func takeLine() -> UnsafeRawBufferPointer? {
        var end = 0
        while end + 1 < count, self[end] != 13 || self[end + 1] != 10 { end += 1 }
        guard end + 1 < count else { return nil }
        defer { self = slice(end + 2..<count) }
        return slice(0..<end)
    }
}
