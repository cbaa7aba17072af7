import Foundation

/// A Swift file of the project, and the part of it that decides how it depends on others.
struct SourceFile {
    /// The path below the project's root.
    let path: String
    let text: String
    let tokens: [SwiftScanner.Token]

    init(path: String, text: String) {
        self.path = path
        self.text = text
        tokens = SwiftScanner.tokens(of: text)
    }

    private var parts: [Substring] { path.split(separator: "/") }

    /// `Media` for `Sources/Media/Sources/GIF/GIFReader.swift`.
    var target: String { parts.count > 2 ? String(parts[1]) : "" }

    /// The folder below the target; nil for a file that lies beside the folders. A limited depth gives an outer folder.
    func folder(depth: Int?) -> String? {
        let folders = parts.dropFirst(2).dropLast()
        return folders.isEmpty ? nil : folders.prefix(depth ?? folders.count).joined(separator: "/")
    }

    /// Modules that the file imports.
    var imports: Set<String> { Set(importedModules.map { tokens[$0].text }) }

    /// Indices of the tokens that name imported modules.
    private var importedModules: [Int] {
        tokens.indices.dropLast().compactMap { index in
            guard tokens[index].text == "import", tokens[index].depth == 0, !tokens[index].isMember else { return nil }
            // `import struct Foundation.URL` names the kind first.
            return Self.kinds.contains(tokens[index + 1].text) && index + 2 < tokens.count ? index + 2 : index + 1
        }
    }

    /// Types that the file declares at its top level for others, and all type names that it declares anywhere.
    var declarations: (shared: Set<String>, all: Set<String>) {
        var (shared, all) = (Set<String>(), Set<String>())
        for (index, token) in tokens.enumerated().dropLast()
        where Self.kinds.contains(token.text) && !token.isMember && Self.isTypeName(tokens[index + 1].text) {
            let name = tokens[index + 1].text
            all.insert(name)
            let modifiers = tokens[..<index].reversed().prefix { Self.modifiers.contains($0.text) }.map(\.text)
            if token.depth == 0 && !modifiers.contains("private") && !modifiers.contains("fileprivate") { shared.insert(name) }
        }
        return (shared, all)
    }

    /// Type names that the file uses unqualified and does not declare itself.
    var uses: Set<String> {
        let modules = Set(importedModules)
        let names = tokens.indices.filter { !tokens[$0].isMember && !modules.contains($0) && Self.isTypeName(tokens[$0].text) }
        return Set(names.map { tokens[$0].text }).subtracting(declarations.all)
    }

    private static let kinds: Set<String> = ["actor", "class", "enum", "protocol", "struct", "typealias"]
    private static let modifiers: Set<String> = [
        "private", "fileprivate", "package", "public", "internal", "open", "final", "indirect", "nonisolated", "unchecked",
        "Sendable", "MainActor",
    ]

    private static func isTypeName(_ text: String) -> Bool { text.first?.isUppercase == true }
}

/// The Swift files below some folders.
struct SourceTree {
    let files: [SourceFile]

    /// A tree of made-up files: paths and their text.
    init(_ texts: [String: String]) {
        files = texts.sorted { $0.key < $1.key }.map { SourceFile(path: $0.key, text: $0.value) }
    }

    /// The project's own files below `folder`.
    init(below folder: String) throws {
        var texts: [String: String] = [:]
        for path in try Project.paths(below: folder) where path.hasSuffix(".swift") { texts[path] = try Project.text(path) }
        self.init(texts)
    }

    var targets: Set<String> { Set(files.map(\.target)) }

    /// Modules that the files of a target import.
    func imports(of target: String) -> Set<String> {
        files.filter { $0.target == target }.reduce(into: []) { $0.formUnion($1.imports) }
    }

    /// Which targets import which.
    var targetGraph: DependencyGraph {
        let targets = targets
        var graph = DependencyGraph()
        for file in files {
            for module in file.imports where targets.contains(module) && module != file.target {
                graph.add(from: file.target, to: module, because: "\(file.path) imports \(module)")
            }
        }
        return graph
    }

    /// Which folders of a target use types of which others. A file beside the folders is a node of its own.
    ///
    /// - Parameter depth: The number of nested folders that are told apart; nil for all.
    func folderGraph(of target: String, depth: Int?) -> DependencyGraph {
        let files = files.filter { $0.target == target }
        func node(_ file: SourceFile) -> String {
            file.folder(depth: depth) ?? String(file.path.split(separator: "/").last ?? "")
        }
        var homes: [String: Set<String>] = [:]
        for file in files {
            for name in file.declarations.shared { homes[name, default: []].insert(node(file)) }
        }
        var graph = DependencyGraph()
        for file in files {
            for name in file.uses {
                // A name that two folders declare says nothing about either.
                guard let home = homes[name], home.count == 1, let other = home.first, other != node(file) else { continue }
                graph.add(from: node(file), to: other, because: "\(file.path) uses \(name)")
            }
        }
        return graph
    }
}

/// The directory of the project.
enum Project {
    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    static func exists(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: root.appendingPathComponent(path).path)
    }

    /// Paths of all files below a folder, from the root.
    static func paths(below folder: String) throws -> [String] {
        let names = FileManager.default.enumerator(atPath: root.appendingPathComponent(folder).path)?.allObjects
        return (names as? [String] ?? []).map { "\(folder)/\($0)" }.sorted()
    }
}
