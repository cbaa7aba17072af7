/// Boxes of ISO base media files (ISO/IEC 14496-12), replaced without care for what other boxes say about them.
extension [UInt8] {
    /// The error for a file without a box that is to be changed: the hostile file would be a sound one.
    struct NoSuchBox: Error {
        let path: [String]
    }

    /// The path of the tables of samples.
    static var sampleTables: [String] { ["moov", "trak", "mdia", "minf", "stbl"] }

    /// A box.
    ///
    /// - Parameter size: What it claims; nil for its length.
    static func box(_ kind: String, _ body: [UInt8], size: Int? = nil) -> [UInt8] {
        .joined(.big(size ?? body.count + 8), .text(kind), body)
    }

    /// A box of version 0 with numbers of 32 bits.
    static func table(_ kind: String, _ numbers: Int...) -> [UInt8] { table(kind, numbers) }

    static func table(_ kind: String, _ numbers: [Int]) -> [UInt8] {
        .box(kind, .joined(.zeros(4), numbers.flatMap { [UInt8].big($0) }))
    }

    /// The number of 32 bits at a position.
    func number(at position: Int) -> Int {
        self[position..<position + 4].reduce(0) { $0 << 8 | Int($1) }
    }

    /// The body of the first box at a path.
    func body(_ path: [String]) throws -> [UInt8] {
        try path.reduce(self) { bytes, kind in
            guard let box = bytes.boxes.first(where: { $0.kind == kind }) else { throw NoSuchBox(path: path) }
            return box.body
        }
    }

    func body(_ path: String...) throws -> [UInt8] { try body(path) }

    /// The file with other bytes instead of the box at a path.
    ///
    /// Tables of positions stay as they are, so the media have to come first.
    ///
    /// - Parameter change: Returns them for the body of the box.
    func replacing(_ path: [String], _ change: ([UInt8]) throws -> [UInt8]) throws -> [UInt8] {
        guard let first = path.first, boxes.contains(where: { $0.kind == first }) else { throw NoSuchBox(path: path) }
        return try boxes.flatMap { kind, body -> [UInt8] in
            if kind != first { return .box(kind, body) }
            return path.count == 1 ? try change(body) : .box(kind, try body.replacing(Array<String>(path.dropFirst()), change))
        }
    }

    /// The file with another body of the box at a path.
    func changing(_ path: [String], _ change: ([UInt8]) throws -> [UInt8]) throws -> [UInt8] {
        try replacing(path) { .box(path.last ?? "", try change($0)) }
    }

    /// The file with other bytes instead of a table of samples.
    func with(_ table: String, _ new: [UInt8]) throws -> [UInt8] {
        try replacing(Self.sampleTables + [table]) { _ in new }
    }

    /// The file without a table of samples that it may have.
    func without(_ table: String) throws -> [UInt8] {
        let tables = try body(Self.sampleTables).boxes
        return tables.contains { $0.kind == table } ? try with(table, []) : self
    }

    /// The same file with its media before its index, so that the index may change its length.
    func withMediaFirst() throws -> [UInt8] {
        guard let media = position(of: .text("mdat")) else { throw NoSuchBox(path: ["mdat"]) }
        let head: [UInt8] = .box("ftyp", try body("ftyp"))
        let whole: [UInt8] = try .joined(head, .box("mdat", body("mdat")), .box("moov", body("moov")))
        let distance = head.count + 4 - media
        return try whole.changing(Self.sampleTables + ["stco"]) { table in
            let positions = stride(from: 8, to: table.count, by: 4).flatMap { [UInt8].big(table.number(at: $0) + distance) }
            return .joined(Array(table.prefix(8)), positions)
        }
    }

    private var boxes: [(kind: String, body: [UInt8])] {
        var (found, position): ([(kind: String, body: [UInt8])], Int) = ([], 0)
        while position + 8 <= count {
            let end = position + number(at: position)
            let kind = String(decoding: self[position + 4..<position + 8], as: UTF8.self)
            found.append((kind, Array(self[position + 8..<end])))
            position = end
        }
        return found
    }
}
