import TestSupport

/// A file whose header, tables or code streams make claims that a reader must not believe.
struct HostileFile: Sendable {
    /// How a server may answer an upload of the file.
    enum Expectation: Sendable {
        /// It converts the file.
        case accepted
        /// It says that the file is broken, too large or of no known format.
        case refused
        /// It may also convert the sound part.
        case either

        func permits(_ status: Int) -> Bool {
            switch self {
            case .accepted: status == 200
            case .refused: [400, 413, 415, 422].contains(status)
            case .either: [200, 413, 415, 422].contains(status)
            }
        }
    }

    let name: String
    let expectation: Expectation
    let bytes: [UInt8]

    init(_ name: String, _ expectation: Expectation, _ bytes: [UInt8]) {
        self.name = name
        self.expectation = expectation
        self.bytes = bytes
    }

    /// All of them. Clips and AVIFs are files that a server made, with one claim changed.
    static func all() throws -> [HostileFile] {
        let server = try GifreelProcess()
        func converted(_ gif: [UInt8], to format: String) throws -> [UInt8] {
            let answer = try server.request("POST", "/\(format)", body: gif)
            guard answer.status == 200 else { throw Unmade(format: format, answer: answer.text) }
            return answer.body
        }
        var small = GIFBuilder(width: 32, height: 32)
        small.addLoop(0)
        for index in 0..<3 {
            let pixels = (0..<32 * 32).map { UInt8(($0 % 32 + index) % 8) }
            small.add(GIFBuilder.Frame(width: 32, height: 32, pixels: pixels))
        }
        var large = GIFBuilder(width: 1600, height: 1600)
        large.addCoded(width: 1600, height: 1600, LZWEncoder.zeros(1600 * 1600))
        let mp4 = try converted(small.finish(), to: "mp4")
        let largeMP4 = try converted(large.finish(), to: "mp4")
        return try [
            HostileGIFs.all, HostileAPNGs.all, HostileWebPs.all,
            HostileMP4s(mp4, large: largeMP4).all(),
            HostileWebMs(converted(small.finish(), to: "webm")).all(),
            HostileAVIFs(converted(small.finish(), to: "avif")).all(),
        ].flatMap(\.self)
    }

    /// The error for a file to start from that the server did not make.
    private struct Unmade: Error {
        let format: String
        let answer: String
    }
}

/// Pieces of files. They keep long sums of literals from the type checker.
extension [UInt8] {
    static func joined(_ parts: [UInt8]...) -> [UInt8] { parts.flatMap(\.self) }
    static func text(_ text: String) -> [UInt8] { Array(text.utf8) }
    static func zeros(_ count: Int) -> [UInt8] { Array(repeating: 0, count: count) }

    static func repeated(_ piece: [UInt8], _ times: Int) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(piece.count * times)
        for _ in 0..<times { result += piece }
        return result
    }

    /// A number whose highest byte comes first.
    static func big(_ number: Int, _ count: Int = 4) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * (count - 1 - $0))) }
    }

    /// A number whose lowest byte comes first.
    static func little(_ number: Int, _ count: Int) -> [UInt8] { big(number, count).reversed() }

    /// The position of the first occurrence of `part`.
    func position(of part: [UInt8]) -> Int? {
        indices.first { self[$0...].starts(with: part) }
    }

    /// The bytes with other ones instead of those from a position on.
    func with(_ new: [UInt8], at position: Int) -> [UInt8] {
        var bytes = self
        bytes.replaceSubrange(position..<position + new.count, with: new)
        return bytes
    }
}
