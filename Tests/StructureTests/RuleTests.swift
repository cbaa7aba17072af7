import Foundation
import Testing

@Suite("Rules of the project that a compiler does not check") struct RuleTests {
    private let sources: SourceTree

    init() throws {
        sources = try SourceTree(below: "Sources")
    }

    @Test(arguments: ["Media", "Fetch", "Store", "HTTP"]) func theLeavesDoNotImportOneAnother(
        _ target: String
    ) {
        let own: Set = [
            "SystemIO", "HTTPClient", "Digests", "CLinux", "CMedia", "CSystem", target,
        ]
        #expect(sources.targets.contains(target))
        #expect(sources.imports(of: target).intersection(sources.targets).subtracting(own).isEmpty)
    }

    @Test func theCoreDoesNotKnowHTTP() {
        #expect(sources.imports(of: "Renditions").isDisjoint(with: ["HTTP", "Web", "Prewarm", "Settings", "gifreel"]))
    }

    /// They fill the configurations of other targets, which know no settings.
    @Test func onlyTheCompositionKnowsTheSettings() {
        #expect(sources.targets.filter { sources.imports(of: $0).contains("Settings") } == ["gifreel"])
    }

    @Test(arguments: ["Media", "Sandbox"]) func theWorkerRunsWithoutFoundation(_ target: String) {
        #expect(!sources.imports(of: target).contains("Foundation"))
    }

    @Test func swiftNIOIsNoDependency() throws {
        let resolved = try Project.text("Package.resolved")
        #expect(resolved.contains("swift-log"))
        #expect(!resolved.lowercased().contains("swift-nio"))
    }

    /// A reader who follows a reference must find the document.
    @Test func documentsThatSourcesMentionExist() throws {
        let names = /[A-Za-z0-9_][A-Za-z0-9_.\/-]*\.md\b/
        for file in sources.files {
            for match in file.text.matches(of: names) {
                #expect(Project.exists(String(match.output)), "\(file.path) mentions \(match.output)")
            }
        }
    }

    /// A renamed source would otherwise only fail the next run of a fuzzer.
    @Test func sourcesThatTheFuzzersCompileExist() throws {
        let names = /\b(Sources|Tests)\/[A-Za-z0-9+.\/*]+/
        let paths = try Project.text("scripts/fuzz").matches(of: names).map { String($0.output.0) }
        #expect(paths.count > 50)
        for pattern in Set(paths) {
            // Only the last component may be a pattern.
            let path = Project.root.appendingPathComponent(pattern)
            let present = try FileManager.default.contentsOfDirectory(atPath: path.deletingLastPathComponent().path)
            #expect(present.contains { fnmatch(path.lastPathComponent, $0, 0) == 0 }, "\(pattern)")
        }
    }
}
