import Foundation
import TestSupport
import Testing

extension OperationsTests {
/// Each way a start can fail ends with a sentence that says what to change.
@Suite(.timeLimit(.minutes(3))) struct StartTests {
    private let directory = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString)")

    /// What a server says that must not start.
    private func complaint(_ settings: [String], configuration: String? = nil, environment: [String: String] = [:]) -> String {
        do {
            _ = try GifreelProcess(settings, configuration: configuration, environment: environment)
            return "it started"
        } catch let error as GifreelProcess.NotStarted {
            return error.log
        } catch {
            return "\(error)"
        }
    }

    @Test func aPortThatIsTakenIsNamed() throws {
        let server = try GifreelProcess()
        #expect(complaint(["server.port=\(server.port)"]).contains("Something else already listens on 127.0.0.1:\(server.port)."))
    }

    @Test func anAddressOfAnotherMachineIsNamed() {
        #expect(complaint(["server.host=192.0.2.1"]).contains("192.0.2.1:0 is no address of this machine."))
        #expect(complaint(["server.host=no.such.host.invalid"]).contains("The host no.such.host.invalid is unknown."))
    }

    @Test func aCacheDirectoryThatCannotBeMadeIsNamed() {
        let text = complaint(["cache.dir=/dev/null/cache"])
        #expect(text.contains("the cache directory /dev/null/cache cannot be used: ") && text.contains("Not a directory"))
    }

    @Test func aCacheDirectoryThatAnotherServerHasIsNamedWithIt() throws {
        let server = try GifreelProcess()
        let text = complaint(["cache.dir=\(server.directory.path)/cache"])
        #expect(text.contains("is in use by another server (process \(server.identifier))"))
    }

    @Test func aPortFileThatCannotBeWrittenIsNamed() {
        #expect(complaint(["server.port_file=/no/such/directory/port"]).contains("/no/such/directory/port"))
    }

    @Test func aFileThatIsNotThereOrNoYAMLIsNamed() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        #expect(complaint([], configuration: "/no/such.yaml").contains("The configuration file /no/such.yaml cannot be read"))
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let file = directory.appendingPathComponent("a.yaml")
        try "server: [unclosed".write(to: file, atomically: true, encoding: .utf8)
        #expect(complaint([], configuration: file.path).contains("The configuration file \(file.path) cannot be read"))
    }

    /// A library that comes before libavcodec and answers in its place.
    private func preloaded(_ code: String) throws -> String {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let (source, library) = (directory.path + "/a.c", directory.path + "/a.so")
        try code.write(toFile: source, atomically: true, encoding: .utf8)
        let compiler = Process()
        compiler.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        compiler.arguments = ["clang", "-shared", "-fPIC", "-o", library, source]
        try compiler.run()
        compiler.waitUntilExit()
        try #require(compiler.terminationStatus == 0)
        return library
    }

    @Test func aMissingEncoderIsNamed() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let library = try preloaded("void *avcodec_find_encoder_by_name(const char *name) { return 0; }")
        #expect(complaint([], environment: ["LD_PRELOAD": library]).contains("libx264 is missing from libavcodec."))
    }

    @Test func aLibraryThatIsTooOldIsNamed() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let library = try preloaded("unsigned avformat_version(void) { return 58 << 16 | 76 << 8 | 100; }")
        #expect(complaint([], environment: ["LD_PRELOAD": library]).contains("libavformat 58.76.100 is too old: "))
    }
}
}
