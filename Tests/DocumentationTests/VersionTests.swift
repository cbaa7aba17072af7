import Foundation
import TestSupport
import Testing

/// The version of the program in the files that name it.
@Suite("Every file names the version of the program") struct VersionTests {
    private func version() throws -> String {
        let source = try Document("Sources/gifreel/Composition/Version.swift").text
        return String(try #require(source.firstMatch(of: /static let version = "(\d+\.\d+\.\d+)"/)).1)
    }

    @Test func theChangelogBeginsWithIt() throws {
        let headings = try Document("docs/CHANGELOG.md").text.matches(of: /(?m)^## (.+)$/).map { String($0.1) }
        let released = headings.first { $0 != "Unreleased" }
        #expect(try released?.wholeMatch(of: /(\S+) – \d{4}-\d{2}-\d{2}/)?.1 == Substring(version()))
    }

    @Test func imagesAndPackagesAreNamedWithIt() throws {
        let version = try version()
        let tag = try Document("config/kubernetes/kustomization.yaml").text.firstMatch(of: /newTag: "(.+)"/)
        #expect(tag?.1 == Substring(version))
        var checked = 0
        for document in try Document.all() + Document.configuration() + [Document("docs/vex.cdx.json")] {
            for match in document.text.matches(of: /\bgifreel[:@_](\d+\.\d+\.\d+)/) {
                checked += 1
                #expect(match.1 == Substring(version), "\(document): \(match.0)")
            }
        }
        // The compose files, the VEX document and the instructions.
        #expect(checked >= 5)
    }

    @Test func theTableOfSupportedVersionsHasIt() throws {
        let minor = try version().split(separator: ".").prefix(2).joined(separator: ".")
        #expect(try Document("docs/SECURITY.md").text.contains("| \(minor).x | yes |"))
    }

    @Test(arguments: [("0.0.1", "names "), ("next", "is not a version")])
    func aReleaseOfAnotherVersionIsRefused(_ version: String, _ reason: String) throws {
        let script = Document.root.appendingPathComponent("scripts/release")
        let folder = try ScratchDirectory()
        let outcome = try ChildProcess(script, [version, folder.path("release")]).finish()
        #expect(outcome.code == 1 && outcome.log.contains(reason), "\(outcome)")
        #expect(folder.names().isEmpty)
    }
}
