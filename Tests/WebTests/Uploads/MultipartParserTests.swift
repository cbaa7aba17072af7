import Testing

@testable import Web

@Suite("Multipart bodies are parsed from pieces of any size") struct MultipartParserTests {
    /// What a parser makes of a body that arrives in pieces of a size.
    private struct Parts: Equatable {
        var parts: [MultipartPart] = []
        var contents: [[UInt8]] = []
        var isComplete = false
    }

    private func parse(_ body: [UInt8], boundary: String = "X", piece: Int = .max) throws -> Parts {
        var parser = try #require(try MultipartParser(form: "multipart/form-data; boundary=\(boundary)"))
        var found = Parts()
        var rest = body[...]
        while !rest.isEmpty {
            let bytes = Array(rest.prefix(piece))
            rest = rest.dropFirst(bytes.count)
            try bytes.withUnsafeBytes { bytes in
                var position = 0
                loop: while true {
                    switch try parser.next(bytes, at: &position) {
                    case .part(let part):
                        found.parts.append(part)
                        found.contents.append([])
                    case .data(let range): found.contents[found.contents.count - 1] += Array(bytes[range])
                    case .delimiterPrefix(let count): found.contents[found.contents.count - 1] += parser.delimiter.prefix(count)
                    case .partEnd: break
                    case .needsMore, .end: break loop
                    }
                }
                #expect(position == bytes.count)
            }
        }
        found.isComplete = parser.isComplete
        return found
    }

    private func part(_ head: String, _ content: [UInt8], _ boundary: String = "X") -> [UInt8] {
        Array("--\(boundary)\r\n\(head)\r\n\r\n".utf8) + content + Array("\r\n".utf8)
    }

    private let file = "Content-Disposition: form-data; name=\"file\"; filename=\"a.gif\"\r\nContent-Type: image/gif"
    private let field = "content-disposition: form-data; name=\"width\""

    @Test func partsAreTheSameInWhateverPiecesTheyArrive() throws {
        // Content that is full of what looks like a delimiter's beginning.
        let content = Array("\r\n--\r\n-\r\r\n--Y--X\r\n--\r".utf8) + (0...255).map { UInt8($0) }
        let body =
            Array("to be ignored\r\n".utf8) + part(field, Array("320".utf8)) + part(file, content)
            + Array("--X--\r\nand this".utf8)
        let whole = try parse(body)
        #expect(whole.parts.map(\.name) == ["width", "file"] && whole.parts.map(\.isFile) == [false, true])
        #expect(whole.contents == [Array("320".utf8), content] && whole.isComplete)
        for piece in [1, 2, 3, 5, 7, 16, 64] { #expect(try parse(body, piece: piece) == whole, "\(piece)") }
    }

    @Test func anEmptyPartIsAPart() throws {
        let body = part(file, []) + Array("--X--".utf8)
        for piece in [1, 4, .max] {
            let found = try parse(body, piece: piece)
            #expect(found.contents == [[]] && found.isComplete)
        }
    }

    @Test func aBodyThatBreaksOffIsIncomplete() throws {
        let body = part(file, [1, 2, 3]) + Array("--X--".utf8)
        for length in 0..<(body.count - 1) { #expect(try !parse(Array(body.prefix(length))).isComplete, "\(length)") }
        #expect(try parse(body).isComplete)
    }

    @Test func aBoundaryInQuotesMayHoldSpaces() throws {
        let body = part(file, [7], "a b;c") + Array("--a b;c--".utf8)
        let found = try parse(body, boundary: "\"a b;c\"; charset=utf-8")
        #expect(found.contents == [[7]] && found.isComplete)
    }

    @Test(arguments: [
        "multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=\"a\u{1}b\"",
        "multipart/form-data; boundary=\(String(repeating: "x", count: 71))",
    ]) func aFormNeedsABoundary(_ contentType: String) {
        #expect(throws: Problem.badRequest("The form's Content-Type has no boundary.")) {
            try MultipartParser(form: contentType)
        }
    }

    @Test func otherBodiesAreNoForms() throws {
        for contentType in [nil, "image/gif", "application/x-www-form-urlencoded", "multipart/mixed; boundary=x"] {
            #expect(try MultipartParser(form: contentType)?.delimiter == nil)
        }
    }

    @Test(arguments: [
        ("Content-Type: image/gif", "has no name"), ("Content-Disposition: form-data", "has no name"),
        ("Content-Disposition: attachment; name=\"file\"", "has no name"), ("nonsense", "has a malformed head"),
        (
            "Content-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: base64",
            "has a transfer encoding, which is not supported"
        ),
    ]) func aPartNeedsAHeadThatCanBeRead(_ head: String, _ fault: String) {
        #expect(throws: Problem.badRequest("A part of the form \(fault).")) { try parse(part(head, [1])) }
    }

    @Test func aHeadHasABound() {
        let head = "\(field)\r\nX: \(String(repeating: "x", count: MultipartParser.maxHeadLength))"
        #expect(throws: Problem.badRequest("The head of a part of the form is too long.")) { try parse(part(head, [1])) }
    }

    @Test func namesAreReadAsBrowsersAndCurlWriteThem() throws {
        for (text, name) in [
            (#"form-data; name="a b"; filename="C:\x\y.gif""#, "a b"), (#"form-data;name=plain;filename=x"#, "plain"),
            (#"form-data; filename="a\"b;c"; name="q\"uoted""#, "q\"uoted"), (#"Form-Data; NAME="n"; filename="""#, "n"),
        ] {
            let part = try head("Content-Disposition: \(text)")
            #expect(part.name == name && part.isFile, "\(text)")
        }
        #expect(try !head(#"Content-Disposition: form-data; name="filename""#).isFile)
    }

    private func head(_ line: String) throws -> MultipartPart {
        try withBytes(of: line + "\r\n") { try MultipartPart(head: $0) }
    }
}
