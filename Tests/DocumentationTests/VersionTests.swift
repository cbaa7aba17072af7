import Foundation
import Testing

/// The version of the program in the files that name it.
@Suite("Every file names the version of the program") struct VersionTests {
    private func version() throws -> String {
        let source = try Document("Sources/gifreel/Version.swift").text
        return String(try #require(source.firstMatch(of: /static let version = "(\d+\.\d+\.\d+)"/)).1)
    }

    @Test func theChangelogBeginsWithIt() throws {
        let headings = try Document("docs/CHANGELOG.md").text.matches(of: /(?m)^## (.+)$/).map { String($0.1) }
        let released = headings.first { $0 != "Unreleased" }
        #expect(try released?.wholeMatch(of: /(\S+) – \d{4}-\d{2}-\d{2}/)?.1 == Substring(version()))
    }

    @Test func imagesAreTaggedWithIt() throws {
        let version = try version()
        let tag = try Document("config/kubernetes/kustomization.yaml").text.firstMatch(of: /newTag: "(.+)"/)
        #expect(tag?.1 == Substring(version))
        for path in ["config/compose.yaml", "config/compose.single.yaml", "docs/operations.md"] {
            let tags = try Document(path).text.matches(of: /\bgifreel:(\d\S*)/).map { String($0.1) }
            #expect(!tags.isEmpty && tags.allSatisfy { $0 == version }, "\(path): \(tags)")
        }
    }

    @Test func theTableOfSupportedVersionsHasIt() throws {
        let minor = try version().split(separator: ".").prefix(2).joined(separator: ".")
        #expect(try Document("docs/SECURITY.md").text.contains("| \(minor).x | yes |"))
    }
}
