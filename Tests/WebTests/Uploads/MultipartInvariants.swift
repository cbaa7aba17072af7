#if !FUZZ
    @testable import Web
#endif

/// What must hold of the parser of forms, whatever arrives and however it is split. The fuzzer looks for bytes for which it does
/// not hold.
enum MultipartInvariants {
    private struct Outcome: Equatable {
        var parts: [MultipartPart] = []
        var contents: [[UInt8]] = []
        var isComplete = false
        var isRefused = false
    }

    /// The first invariant that does not hold, in words; nil if all do.
    ///
    /// - Parameter bytes: A byte that says how the body is split, and the body of a form with the boundary `b`.
    static func violation(_ bytes: UnsafeRawBufferPointer) -> String? {
        guard let first = bytes.first else { return nil }
        let body = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
        do throws(Problem) {
            guard let whole = try parse(body, piece: max(1, body.count)), let split = try parse(body, piece: 1 + Int(first) % 9)
            else { return "no progress" }
            guard whole == split else { return "a split changes the form: \(whole) \(split)" }
            guard whole.contents.reduce(0, { $0 + $1.count }) <= body.count else { return "content that was not sent" }
            guard whole.contents.count <= whole.parts.count else { return "content without a part" }
            return nil
        } catch {
            return "the boundary is refused"
        }
    }

    /// Parses a body in pieces; nil if a step makes no progress.
    private static func parse(_ body: UnsafeRawBufferPointer, piece: Int) throws(Problem) -> Outcome? {
        let contentType: StaticString = "multipart/form-data; boundary=b"
        let bytes = UnsafeRawBufferPointer(start: contentType.utf8Start, count: contentType.utf8CodeUnitCount)
        guard var parser = try MultipartParser(form: bytes) else { return nil }
        var outcome = Outcome()
        var rest = body[...]
        while !rest.isEmpty {
            let input = UnsafeRawBufferPointer(rebasing: rest.prefix(piece))
            rest = rest.dropFirst(piece)
            var position = 0
            var steps = 0
            steps: while true {
                steps += 1
                // Each step uses a byte, or ends a part or the delimiter that an earlier one began.
                guard steps <= 3 * input.count + 3 else { return nil }
                do throws(Problem) {
                    switch try parser.next(input, at: &position) {
                    case .part(let part):
                        outcome.parts.append(part)
                        outcome.contents.append([])
                    case .data(let range):
                        guard !outcome.contents.isEmpty else { return nil }
                        outcome.contents[outcome.contents.count - 1] += Array(input[range])
                    case .delimiterPrefix(let count):
                        guard !outcome.contents.isEmpty else { return nil }
                        outcome.contents[outcome.contents.count - 1] += Array(parser.delimiter.prefix(count))
                    case .partEnd: break
                    case .needsMore: break steps
                    case .end:
                        outcome.isComplete = true
                        return parser.isComplete ? outcome : nil
                    }
                } catch {
                    outcome.isRefused = true
                    return outcome
                }
            }
        }
        return outcome
    }
}

/// The first inputs of the fuzzer.
enum MultipartSeeds {
    static let all: [[UInt8]] = [
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.gif\"\r\n\r\nGIF89a\r\n--b--\r\n",
        "preamble\r\n--b\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--b\r\nContent-Disposition: form-data; name=b"
            + "\r\nContent-Transfer-Encoding: binary\r\n\r\n2\r\n--b--",
        "--b \t\r\nX: y\r\nContent-Disposition: form-data; name=\"q\\\"\\\\\"; filename*=u\r\n\r\n\r\r\n-\r\n--\r\n--b--tail",
        "\r\n--b--", "--b\r\n\r\n\r\n--b--", "--b\r\nContent-Transfer-Encoding: base64\r\n\r\n",
    ].map { [3] + Array($0.utf8) }
}
