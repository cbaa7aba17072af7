import Foundation
import TestSupport
import Testing

/// Runs the functions of config/clients, each in its language, as far as the machine has it.
@Suite("The functions of config/clients give the addresses of gifreel sign", .timeLimit(.minutes(10)))
struct AddressBuilderTests {
    /// A language whose programs take key, format and source as their arguments, and then the options.
    struct Language: Sendable, CustomTestStringConvertible {
        let name: String
        let program: String
        /// The arguments of a program that needs no compiler.
        var arguments: [String] = []

        var testDescription: String { name }
    }

    private static let folder = Document.root.path + "/config/clients"
    private static let key = "an-example-key-of-at-least-32-bytes"

    static let languages = [
        Language(
            name: "JavaScript", program: "node",
            arguments: [
                "--input-type=module", "-e",
                """
                import { gifreel } from "\(URL(fileURLWithPath: folder).absoluteString)/gifreel.mjs";
                const [key, format, source, ...options] = process.argv.slice(1);
                console.log(gifreel(source, { key, format, ...Object.fromEntries(options.map((text) => text.split("="))) }));
                """,
            ]),
        Language(
            name: "Python", program: "python3",
            arguments: [
                "-B", "-c",
                """
                import sys
                sys.path.insert(0, "\(folder)")
                from gifreel import gifreel
                key, format, source, *options = sys.argv[1:]
                print(gifreel(source, key=key, format=format, **dict(text.split("=") for text in options)))
                """,
            ]),
        Language(
            name: "Ruby", program: "ruby",
            arguments: [
                "-r", folder + "/gifreel.rb", "-e",
                """
                key, format, source, *options = ARGV
                puts gifreel(source, key: key, format: format, **options.to_h { |text| text.split("=") }.transform_keys(&:to_sym))
                """,
            ]),
        Language(
            name: "PHP", program: "php",
            arguments: [
                "-r",
                """
                require '\(folder)/gifreel.php';
                [, $key, $format, $source] = $argv;
                $options = [];
                foreach (array_slice($argv, 4) as $text) { [$name, $value] = explode('=', $text); $options[$name] = $value; }
                echo gifreel($source, $options, $format, $key), "\\n";
                """, "--",
            ]),
        Language(name: "Go", program: "go"), Language(name: "Swift", program: "swiftc"),
    ]

    /// Sources and options that are easily written in two ways.
    private static let requests: [(format: String, source: String, options: [String])] = [
        ("mp4", "https://example.com/cat.gif", []), ("mp4", "https://example.com/a b/cat (1).gif", ["width=480"]),
        ("webm", "https://example.com/größe/猫😀.gif", ["quality=80", "loops=2"]),
        ("avif", "https://example.com/a.gif?v=2&name=a b&x=[1]|\"2\"", ["width=320", "expires=2000000000"]),
        ("jpg", "https://example.com:8443/a%20b/c+d,e=f.gif#part", ["width=160", "frame=auto"]),
        ("mp4", "https://example.com/it's;a=1/~user/$&*!.gif", ["width=200", "height=100", "gravity=0.25:0.5", "fit=cover"]),
        ("html", "https://example.com/a.gif", ["title=Zoë, \"a/b?\" & <c>#1+2,", "on_error=original"]),
    ]

    /// The program and its first arguments.
    private func command(_ language: Language, in folder: ScratchDirectory) throws -> (URL, [String]) {
        let program = try #require(ChildProcess.find(language.program))
        let compiler: [String]
        // Go's own flag for the directory is as new as Go 1.20.
        let start = ["-C", folder.path, program.path]
        switch language.name {
        case "Go":
            try folder.write("go.mod", "module example\n")
            try folder.write("gifreel/gifreel.go", Document("config/clients/gifreel.go").text)
            try folder.write("main.go", Self.goMain)
            compiler = start + ["build", "-o", "program", "."]
        case "Swift":
            let main = try folder.write("main.swift", Self.swiftMain)
            let headers = Document.root.path + "/Sources/CSystem"
            compiler = start + ["-I", headers, "-o", "program", Self.folder + "/gifreel.swift", main]
        default: return (program, language.arguments)
        }
        let settings = ["GOCACHE": folder.path("cache"), "GOPROXY": "off", "GOTOOLCHAIN": "local"]
        let environment = ProcessInfo.processInfo.environment.merging(settings) { $1 }
        let outcome = try ChildProcess(URL(fileURLWithPath: "/usr/bin/env"), compiler, environment: environment).finish()
        try #require(outcome.code == 0, "\(outcome.log)\(outcome.output)")
        return (URL(fileURLWithPath: folder.path("program")), [])
    }

    @Test(arguments: languages) func addressesAreThoseOfTheSigner(_ language: Language) throws {
        if ChildProcess.find(language.program) == nil { try Test.cancel("\(language.program) is not installed.") }
        let folder = try ScratchDirectory()
        let (program, arguments) = try command(language, in: folder)
        for (format, source, options) in Self.requests {
            // The signer takes the expiry by a flag.
            let words = options.flatMap { $0.hasPrefix("expires=") ? ["--expires", String($0.dropFirst(8))] : [$0] }
            let signed = try GifreelCommandLine.run(
                ["sign", source, "--format", format] + words, environment: ["GIFREEL_SIGNING_KEYS": Self.key])
            #expect(signed.code == 0, "\(signed.log)")
            for (key, expected) in [(Self.key, signed.output), ("", signed.output.replacing(/,sig=[^\/]+/, with: ""))] {
                let outcome = try ChildProcess(program, arguments + [key, format, source] + options).finish()
                #expect(outcome.output == expected, "\(outcome.log)")
            }
        }
    }

    /// Programs that give an option without a value, by the programs that run them.
    static let absences: [(String, [String])] = [
        (
            "node",
            [
                "--input-type=module", "-e",
                """
                import { gifreel } from "\(URL(fileURLWithPath: folder).absoluteString)/gifreel.mjs";
                console.log(gifreel("https://example.com/a.gif", { width: undefined, height: null, loops: 2 }));
                """,
            ]
        ),
        (
            "python3",
            [
                "-B", "-c",
                """
                import sys
                sys.path.insert(0, "\(folder)")
                from gifreel import gifreel
                print(gifreel("https://example.com/a.gif", width=None, loops=2))
                """,
            ]
        ),
        ("ruby", ["-r", folder + "/gifreel.rb", "-e", "puts gifreel('https://example.com/a.gif', width: nil, loops: 2)"]),
        (
            "php",
            [
                "-r",
                """
                require '\(folder)/gifreel.php';
                echo gifreel('https://example.com/a.gif', ['width' => null, 'loops' => 2]);
                """,
            ]
        ),
    ]

    /// Components and helpers pass on properties that a page may leave out.
    @Test(arguments: absences) func anOptionWithoutAValueIsLeftOut(_ name: String, _ arguments: [String]) throws {
        guard let program = ChildProcess.find(name) else { try Test.cancel("\(name) is not installed.") }
        let outcome = try ChildProcess(program, arguments).finish()
        #expect(outcome.output == "/mp4,loops=2/https://example.com/a.gif", "\(outcome.log)")
    }

    @Test func eachLanguageHasAFile() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder)
        #expect(Set(names) == Set(["mjs", "py", "rb", "php", "go", "swift"].map { "gifreel.\($0)" }))
    }

    private static let goMain = """
        package main

        import (
            "example/gifreel"
            "fmt"
            "os"
            "strings"
        )

        func main() {
            options := map[string]string{}
            for _, text := range os.Args[4:] {
                name, value, _ := strings.Cut(text, "=")
                options[name] = value
            }
            fmt.Println(gifreel.Address("", os.Args[1], os.Args[2], os.Args[3], options))
        }
        """

    private static let swiftMain = """
        import CSystem

        let words = CommandLine.arguments
        let key = words[1]
        func code(_ text: String) -> any Sequence<UInt8> {
            var bytes = [UInt8](repeating: 0, count: 32)
            _ = HMAC(EVP_sha256(), key, Int32(key.utf8.count), Array(text.utf8), text.utf8.count, &bytes, nil)
            return bytes
        }
        let options = words[4...].map { $0.split(separator: "=").map(String.init) }
        print(
            gifreel(
                words[3], format: words[2], options: Dictionary(uniqueKeysWithValues: options.map { ($0[0], $0[1]) }),
                code: key.isEmpty ? nil : code))
        """
}
