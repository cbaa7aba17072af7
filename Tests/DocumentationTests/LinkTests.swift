import Foundation
import TestSupport
import Testing

/// Links, length and names in README.md and docs/.
@Suite("Documents are consistent") struct LinkTests {
    @Test func everyRelativeLinkLeadsToAFileAndAHeadingThatExist() throws {
        let documents = try Document.all()
        try #require(documents.count > 10)
        for document in documents {
            let folder = Document.root.appendingPathComponent(document.path).deletingLastPathComponent()
            for link in document.links where !link.contains("://") && !link.hasPrefix("mailto:") {
                let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
                let target =
                    parts[0].isEmpty
                    ? Document.root.appendingPathComponent(document.path) : folder.appendingPathComponent(String(parts[0]))
                #expect(FileManager.default.fileExists(atPath: target.path), "\(document): \(link)")
                guard parts.count > 1 else { continue }
                let path = String(target.standardizedFileURL.path.dropFirst(Document.root.standardizedFileURL.path.count + 1))
                let anchors = try Document(path).anchors
                #expect(anchors.contains(String(parts[1])), "\(document): \(link)")
            }
        }
    }

    @Test func everyDocumentIsLinkedFromREADMEOrFromADocumentThatIs() throws {
        var reached: Set<String> = []
        var pending = ["README.md"]
        while let path = pending.popLast() {
            guard reached.insert(path).inserted else { continue }
            let document = try Document(path)
            let folder = Document.root.appendingPathComponent(path).deletingLastPathComponent()
            for link in document.links where !link.contains("://") {
                let file = folder.appendingPathComponent(String(link.prefix { $0 != "#" })).standardizedFileURL.path
                if file.hasSuffix(".md") {
                    pending.append(String(file.dropFirst(Document.root.standardizedFileURL.path.count + 1)))
                }
            }
        }
        for document in try Document.all() { #expect(reached.contains(document.path), "\(document)") }
    }

    @Test func readmeHasFewerThan1000Words() throws {
        let words = try Document("README.md").text.split(whereSeparator: \.isWhitespace)
        #expect(words.count < 1000)
    }

    @Test func theArchitectureNamesEveryTargetOfThePackage() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Document.root.appendingPathComponent("Sources").path)
        let text = try Document("docs/architecture.md").text
        let table = try #require(text.firstRange(of: "| target | contents |\n"))
        let rows = text[table.upperBound...].split(separator: "\n", omittingEmptySubsequences: false).prefix { !$0.isEmpty }
            .filter { $0.hasPrefix("| `") }
        let named = rows.flatMap { row in
            (row.split(separator: "|").first ?? "").split(separator: " ").map { $0.filter { $0 != "`" } }
        }
        #expect(Set(named) == Set(folders.filter { !$0.hasPrefix(".") }))
    }

    @Test func everyScriptThatADocumentNamesExists() throws {
        for document in try Document.all() {
            for match in document.code.joined(separator: "\n").matches(of: /scripts\/[a-z][a-z-]*/) {
                let path = Document.root.appendingPathComponent(String(match.0)).path
                #expect(FileManager.default.fileExists(atPath: path), "\(document): \(match.0)")
            }
        }
    }

    @Test func everySourceFileThatADocumentNamesExists() throws {
        var checked = 0
        for document in try Document.all() {
            for code in document.code where code.wholeMatch(of: /[A-Za-z]+\/[A-Za-z0-9+\/]+\.(swift|c|h)/) != nil {
                checked += 1
                let path = Document.root.appendingPathComponent("Sources/\(code)").path
                #expect(FileManager.default.fileExists(atPath: path), "\(document): \(code)")
            }
        }
        #expect(checked > 2)
    }
}
