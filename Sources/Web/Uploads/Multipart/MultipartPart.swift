/// What the head of one part of a form says (RFC 7578 section 4).
struct MultipartPart: Equatable {
    /// The name of the form's field.
    let name: String
    /// Whether the part is a file: it has a file name, whatever that is. Browsers send one with every file, and an empty
    /// one where no file was chosen.
    let isFile: Bool

    /// Reads the lines of a part's head.
    ///
    /// - Throws: ``Problem`` where the part has no name or is coded in a way that nobody sends (RFC 7578 section 4.7).
    init(head: String) throws(Problem) {
        var disposition: FieldParameters?
        for line in head.split(separator: "\r\n") {
            guard let colon = line.firstIndex(of: ":") else { throw .badRequest("A part of the form has a malformed head.") }
            let text = String(line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" })
            switch line[..<colon].lowercased() {
            case "content-disposition": disposition = FieldParameters(text)
            case "content-transfer-encoding":
                guard ["binary", "8bit", "7bit"].contains(FieldParameters(text).value) else {
                    throw .badRequest("A part of the form has a transfer encoding, which is not supported.")
                }
            default: break
            }
        }
        guard let disposition, disposition.value == "form-data", let name = disposition.parameters["name"] else {
            throw .badRequest("A part of the form has no name.")
        }
        self.name = name
        isFile = disposition.parameters["filename"] != nil || disposition.parameters["filename*"] != nil
    }
}
