package import Foundation

/// A Markdown document of the project, or another text file.
package struct Document: CustomStringConvertible, Sendable {
    /// The root of the checkout.
    package static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The path below the root, such as `docs/api.md`.
    package let path: String
    package let text: String

    package var description: String { path }

    package init(_ path: String) throws {
        self.path = path
        text = try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8)
    }

    /// `README.md` and everything below `docs/`.
    package static func all() throws -> [Document] {
        let names = FileManager.default.enumerator(atPath: root.appendingPathComponent("docs").path)?.allObjects ?? []
        let paths = names.compactMap { $0 as? String }.filter { $0.hasSuffix(".md") }.sorted().map { "docs/\($0)" }
        return try (["README.md"] + paths).map(Document.init)
    }

    /// Everything below `config/`.
    package static func configuration() throws -> [Document] {
        let names = FileManager.default.enumerator(atPath: root.appendingPathComponent("config").path)?.allObjects ?? []
        let paths = names.compactMap { $0 as? String }.filter { $0.contains(".") }.sorted().map { "config/\($0)" }
        return try paths.map(Document.init)
    }

    // MARK: Blocks

    /// A fenced block of code.
    package struct CodeBlock: Sendable {
        /// The first word of the info string; empty if there is none.
        package var language: String
        package var text: String
        /// The text of the heading above it.
        package var section: String
    }

    /// The lines outside fenced blocks, and the fenced blocks.
    private var parts: (prose: [Substring], blocks: [CodeBlock]) {
        var prose: [Substring] = []
        var blocks: [CodeBlock] = []
        var open: CodeBlock?
        var section = ""
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```") {
                if let block = open {
                    blocks.append(block)
                    open = nil
                } else {
                    let language = line.dropFirst(3).prefix { $0 != " " }
                    open = CodeBlock(language: String(language), text: "", section: section)
                }
            } else if open != nil {
                open?.text += line + "\n"
            } else {
                if line.hasPrefix("#") { section = String(line.drop { $0 == "#" }.drop { $0 == " " }) }
                prose.append(line)
            }
        }
        return (prose, blocks)
    }

    package var codeBlocks: [CodeBlock] { parts.blocks }

    /// The text without fenced blocks.
    package var prose: String { parts.prose.joined(separator: "\n") }

    /// The fragments that lead to headings, formed as code hosts form them: lower case, without punctuation, blanks as
    /// hyphens.
    package var anchors: Set<String> {
        Set(
            parts.prose.filter { $0.hasPrefix("#") }.map { line in
                let title = line.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces).lowercased()
                return String(
                    title.compactMap { character in
                        if character == " " { return "-" }
                        return character.isLetter || character.isNumber || character == "-" || character == "_"
                            ? character : nil
                    })
            })
    }

    /// The targets of links and images, in Markdown and in HTML elements, but not in code.
    package var links: [String] {
        let prose = prose.replacing(/`[^`\n]+`/, with: "")
        let inline = prose.matches(of: /\]\(([^()\s]+)\)/).map { String($0.1) }
        let elements = prose.matches(of: /(?:src|href)="([^"]+)"/).map { String($0.1) }
        return inline + elements
    }

    /// The contents of inline code and of fenced blocks.
    package var code: [String] {
        prose.matches(of: /`([^`\n]+)`/).map { String($0.1) } + codeBlocks.map(\.text)
    }
}
