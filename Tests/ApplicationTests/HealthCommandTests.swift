import Foundation
import Glibc
import TestSupport
import Testing

@Suite("gifreel health tells whether the server of its settings is ready", .timeLimit(.minutes(10))) struct HealthCommandTests {
    private func health(_ arguments: [String], environment: [String: String] = [:]) throws -> ChildProcess.Outcome {
        try GifreelCommandLine.run(["health"] + arguments, environment: environment)
    }

    private func settings(_ lines: String...) -> [String] { lines.flatMap { ["--set", $0] } }

    @Test func aServerIsFoundByItsPortItsPortFileAndItsURL() throws {
        let server = try GifreelProcess()
        let portFile = server.directory.appendingPathComponent("port").path
        // A proxy of the environment is for sources, not for the machine itself.
        let proxy = ["http_proxy": "http://127.0.0.1:9", "all_proxy": "http://127.0.0.1:9"]
        for arguments in [
            settings("server.port=\(server.port)"), settings("server.port=\(server.port)", "server.host=0.0.0.0"),
            settings("server.port=\(server.port)", "server.host=::"),
            settings("server.port=0", "server.port_file=\(portFile)"), ["--server", "http://127.0.0.1:\(server.port)"],
        ] {
            for flag in [[], ["--live"]] {
                let outcome = try health(arguments + flag, environment: proxy)
                #expect(outcome.code == 0 && outcome.output.isEmpty && outcome.log.isEmpty, "\(arguments) \(outcome)")
            }
        }
        let byVariable = try health([], environment: ["GIFREEL_SERVER_PORT": "\(server.port)"])
        #expect(byVariable.code == 0, "\(byVariable)")
    }

    /// A reload refuses the file, and the server keeps its settings.
    @Test func aServerWhoseFileHasBecomeInvalidStaysHealthy() throws {
        let (server, scratch) = (try GifreelProcess(), try ScratchDirectory())
        let file = scratch.path + "/settings.yaml"
        try "limits:\n  framez: 3\n".write(toFile: file, atomically: true, encoding: .utf8)
        let outcome = try health(["--config", file] + settings("server.port=\(server.port)"))
        #expect(outcome.code == 0 && outcome.log.contains("limits.framez"), "\(outcome)")
        let missing = try health(["--config", file] + settings("server.port=9"))
        #expect(missing.code == 1 && missing.log.contains("limits.framez"), "\(missing)")
    }

    @Test func aServerIsFoundByItsSocket() throws {
        let scratch = try ScratchDirectory()
        let path = scratch.path + "/socket"
        let server = try GifreelProcess(["server.unix_path=\(path)"])
        for arguments in [settings("server.unix_path=\(path)"), ["--server", "unix:\(path)"]] {
            let outcome = try health(arguments)
            #expect(outcome.code == 0, "\(arguments) \(outcome)")
        }
        #expect(try health(["--help"]).output.contains("unix: and the path"))
        withExtendedLifetime(server) {}
    }

    @Test func aDrainingServerIsAliveButNotReady() throws {
        let server = try GifreelProcess(["server.shutdown_delay=60s"])
        let arguments = settings("server.port=\(server.port)")
        kill(server.identifier, SIGTERM)
        try blockUntil("readyz to be 503") { try server.request("GET", "/readyz").status == 503 }
        let ready = try health(arguments)
        #expect(ready.code == 1 && ready.log.contains("/readyz answers 503"), "\(ready)")
        #expect(try health(arguments + ["--live"]).code == 0)
        server.kill()
    }

    /// Another server may listen at the address, or a proxy.
    @Test(arguments: [204, 302, 401, 404, 500]) func anyOtherStatusIsNoHealth(_ status: Int) throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        for (flags, path) in [([], "/readyz"), (["--live"], "/healthz")] as [([String], String)] {
            origin.on(path, .response("\(status) Status", ["Location: /"]))
            let outcome = try health(["--server", origin.url("")] + flags)
            #expect(outcome.code == 1 && outcome.log.contains("\(path) answers \(status)."), "\(outcome)")
        }
    }

    @Test(arguments: [
        (["--set", "server.port=9"], Int32(1), "127.0.0.1"),
        (["--set", "server.port=0"], 1, "set server.port_file"),
        (["--set", "server.port=0", "--set", "server.port_file=/nowhere/port"], 1, "has not started"),
        (["--set", "server.unix_path=/nowhere/socket"], 1, "unix:/nowhere/socket: unreachable: connect: No such file"),
        (["--timeout", "0"], 64, "1 to 60"),
        (["--server", "localhost"], 64, "must be an http or https URL"),
    ]) func errorsNameTheirCause(_ arguments: [String], _ code: Int32, _ sentence: String) throws {
        let outcome = try health(arguments)
        #expect(outcome.code == code && outcome.log.contains(sentence), "\(outcome)")
    }
}
