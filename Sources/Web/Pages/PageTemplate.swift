/// A page with places to fill in, written `{{name}}`.
struct PageTemplate: Sendable {
    private enum Piece: Sendable {
        case text(String)
        case place(String)
    }

    private var pieces: [Piece] = []

    /// - Parameter bytes: UTF-8, as it is kept with the program.
    init(_ bytes: [UInt8]) {
        var rest = Substring(String(decoding: bytes, as: UTF8.self))
        while let open = rest.firstRange(of: "{{"), let close = rest[open.upperBound...].firstRange(of: "}}") {
            pieces.append(.text(String(rest[..<open.lowerBound])))
            pieces.append(.place(String(rest[open.upperBound..<close.lowerBound])))
            rest = rest[close.upperBound...]
        }
        pieces.append(.text(String(rest)))
    }

    /// The page.
    ///
    /// - Parameters:
    ///   - texts: What is known of strangers, by the names of the places; it is escaped.
    ///   - markup: What is our own, put in as it is.
    func filled(_ texts: [String: String], markup: [String: String] = [:]) -> String {
        var page = ""
        for piece in pieces {
            switch piece {
            case .text(let text): page += text
            case .place(let name): page += markup[name] ?? texts[name].map(HTMLText.escape) ?? ""
            }
        }
        return page
    }

    /// The names of the places, in order.
    var places: [String] {
        pieces.compactMap { piece in
            if case .place(let name) = piece { return name }
            return nil
        }
    }
}
