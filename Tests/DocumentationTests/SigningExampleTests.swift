import Foundation
import TestSupport
import Testing

/// Runs the signing examples of docs/access.md.
@Suite("Signing examples", .timeLimit(.minutes(10))) struct SigningExampleTests {
    /// How the examples of one language are run.
    private struct Language {
        let program: String
        /// Whether a machine that runs the tests always has it.
        let isRequired: Bool
    }

    private static let languages = [
        "sh": Language(program: "sh", isRequired: true), "python": Language(program: "python3", isRequired: true),
        "javascript": Language(program: "node", isRequired: false), "php": Language(program: "php", isRequired: false),
    ]

    /// The built `gifreel`, which lies beside the tests.
    private static let gifreel = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
        .deletingLastPathComponent().appendingPathComponent("gifreel")

    private func examples() throws -> [Document.CodeBlock] {
        try Document("docs/access.md").codeBlocks.filter { $0.section == "Signing examples" }
    }

    /// Runs a program to its end and returns its standard output.
    private func output(of program: URL, _ arguments: [String]) throws -> String {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        let environment = [
            "PATH": "\(Self.gifreel.deletingLastPathComponent().path):\(path)",
            "GIFREEL_SIGNING_KEYS": "an-example-key-of-at-least-32-bytes",
        ]
        let outcome = try ChildProcess(program, arguments, environment: environment).finish()
        #expect(outcome.code == 0, "\(outcome.log)")
        return outcome.output
    }

    private func find(_ program: String) -> URL? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return path.split(separator: ":").map { URL(fileURLWithPath: "\($0)/\(program)") }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    @Test func thereIsAnExampleForEachLanguage() throws {
        let found = Set(try examples().map(\.language).filter { !$0.isEmpty })
        #expect(found == Set(Self.languages.keys))
    }

    @Test(arguments: ["sh", "python", "javascript", "php"])
    func eachExamplePrintsWhatGifreelSignPrints(_ name: String) throws {
        let language = try #require(Self.languages[name])
        guard let program = find(language.program) else {
            try #require(!language.isRequired, "\(language.program) is not installed; scripts/setup --tests installs it.")
            try Test.cancel("\(language.program) is not installed.")
        }
        let expected = try output(
            of: Self.gifreel, ["sign", "https://example.com/a.gif?v=2", "quality=80", "--expires", "2000000000"])
        #expect(expected.hasPrefix("/mp4,"))
        for example in try examples() where example.language == name {
            let file = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-example-\(UUID().uuidString)")
            try Data(example.text.utf8).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            #expect(try output(of: program, [file.path]) == expected)
        }
        #expect(try Document("docs/access.md").text.contains(expected))
    }

    /// A server verifies the same text in `FactsListTests`.
    @Test func theExampleOfAListPrintsWhatTheDocumentSays() throws {
        let document = try Document("docs/access.md")
        let example = try #require(document.codeBlocks.first { $0.section == "Lists of facts" && $0.language == "python" })
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-example-\(UUID().uuidString)")
        try Data(example.text.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let printed = try output(of: try #require(find("python3")), [file.path])
        #expect(printed.hasPrefix("/facts?expires=2000000000&sig=") && document.text.contains(printed))
    }
}
