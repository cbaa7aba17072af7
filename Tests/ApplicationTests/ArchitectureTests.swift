import Foundation
import Testing

/// The rules of the house that a compiler does not know.
@Suite struct ArchitectureTests {
    private let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// Modules that the files of a target import.
    private func imports(_ target: String) throws -> Set<String> {
        let folder = root.appendingPathComponent("Sources/\(target)")
        var modules = Set<String>()
        let names = FileManager.default.enumerator(atPath: folder.path)?.allObjects as? [String] ?? []
        for name in names where name.hasSuffix(".swift") {
            let text = try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
            for line in text.split(separator: "\n") {
                let words = line.split(separator: " ")
                guard let index = words.firstIndex(of: "import"), index <= 2, index + 1 < words.count else { continue }
                modules.insert(String(words[index + 1]))
            }
        }
        try #require(!modules.isEmpty)
        return modules
    }

    @Test(arguments: ["Media", "Fetch", "Cache", "HTTP"]) func leavesDoNotKnowOneAnother(_ target: String) throws {
        let others = Set(["Media", "Fetch", "Cache", "HTTP", "Sandbox", "Service"]).subtracting([target])
        #expect(try imports(target).isDisjoint(with: others))
    }

    @Test(arguments: ["Media", "Sandbox"]) func whatRunsInTheWorkerDoesWithoutFoundation(_ target: String) throws {
        #expect(try !imports(target).contains("Foundation"))
    }

    @Test func thereIsNoSwiftNIO() throws {
        let resolved = try String(contentsOf: root.appendingPathComponent("Package.resolved"), encoding: .utf8)
        #expect(resolved.contains("grdb.swift"))
        #expect(!resolved.lowercased().contains("swift-nio"))
    }

    /// A file that was renamed would be noticed by whoever fuzzes next, which is not often.
    @Test func whatTheFuzzersAreMadeOfIsThere() throws {
        let text = try String(contentsOf: root.appendingPathComponent("scripts/fuzz"), encoding: .utf8)
        let rows = text.split(separator: "\n").filter { $0.contains("Invariants.violation|") }
        #expect(rows.count >= 4)
        for row in rows {
            let sources = try #require(row.split(separator: "|").last).split(separator: " ")
            #expect(!sources.isEmpty)
            for source in sources {
                let path = root.appendingPathComponent(String(source))
                // At most the name is a pattern.
                let isNamed = { (name: String) in fnmatch(path.lastPathComponent, name, 0) == 0 }
                let names = try FileManager.default.contentsOfDirectory(atPath: path.deletingLastPathComponent().path)
                #expect(names.contains(where: isNamed), "\(source)")
            }
        }
    }

    @Test(arguments: ["Sources", "Tests", "scripts"]) func noFileIsTooLongToRead(_ folder: String) throws {
        let files = FileManager.default.enumerator(
            at: root.appendingPathComponent(folder), includingPropertiesForKeys: [.isRegularFileKey])
        var read = 0
        for case let file as URL in try #require(files) {
            // What is no text (fuzzing's corpora, Python's caches) has no lines to count.
            guard try file.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true,
                let text = try? String(contentsOf: file, encoding: .utf8)
            else { continue }
            read += 1
            #expect(text.split(separator: "\n", omittingEmptySubsequences: false).count <= 301, "\(file.path)")
        }
        #expect(read > 20)
    }
}
