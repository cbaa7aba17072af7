/// An HTML page with placeholders of the form `{{name}}`.
struct PageTemplate: Sendable {
    private enum Piece: Sendable {
        case text(String)
        case placeholder(String)
    }

    private var pieces: [Piece] = []

    /// - Parameter bytes: UTF-8, from the program's resources.
    init(_ bytes: [UInt8]) {
        var rest = Substring(String(decoding: bytes, as: UTF8.self))
        while let open = rest.firstRange(of: "{{"), let close = rest[open.upperBound...].firstRange(of: "}}") {
            pieces.append(.text(String(rest[..<open.lowerBound])))
            pieces.append(.placeholder(String(rest[open.upperBound..<close.lowerBound])))
            rest = rest[close.upperBound...]
        }
        pieces.append(.text(String(rest)))
    }

    /// The page with values for its placeholders.
    ///
    /// - Parameters:
    ///   - texts: Untrusted texts by placeholder. They are escaped.
    ///   - markup: Markup by placeholder, inserted unchanged.
    func filled(_ texts: [String: String], markup: [String: String] = [:]) -> String {
        var page = ""
        for piece in pieces {
            switch piece {
            case .text(let text): page += text
            case .placeholder(let name): page += markup[name] ?? texts[name].map(HTMLText.escape) ?? ""
            }
        }
        return page
    }
}
