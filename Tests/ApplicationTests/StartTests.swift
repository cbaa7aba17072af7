import Foundation
import Logging
import Media
import Sandbox
import Settings
import Store
import TestSupport
import Testing

@testable import gifreel

extension OperationsTests {
    @Suite("A start that fails says what to change", .timeLimit(.minutes(10))) struct StartTests {
        private let directory = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString)")

        /// What a server says that must not start.
        private func complaint(_ settings: [String], configuration: String? = nil, environment: [String: String] = [:])
            -> String
        {
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
            #expect(
                complaint(["server.port=\(server.port)"]).contains(
                    "Another process already listens on 127.0.0.1:\(server.port)."))
        }

        @Test func anAddressOfAnotherMachineIsNamed() {
            #expect(complaint(["server.host=192.0.2.1"]).contains("192.0.2.1:0: this machine does not have the address."))
            #expect(
                complaint(["server.host=no.such.host.invalid"]).contains(
                    "The host no.such.host.invalid cannot be resolved to an address."))
        }

        @Test func aCacheDirectoryThatCannotBeCreatedIsNamed() {
            let text = complaint(["cache.dir=/dev/null/cache"])
            #expect(text.contains("the cache directory /dev/null/cache cannot be used: ") && text.contains("Not a directory"))
        }

        @Test func aCacheDirectoryThatAnotherServerHasIsNamedWithIt() throws {
            let server = try GifreelProcess()
            let text = complaint(["cache.dir=\(server.directory.path)/cache"])
            #expect(text.contains("is in use by another server (process \(server.identifier))"))
        }

        @Test func anotherFileAtThePathOfTheSocketIsNamedAndStays() throws {
            let folder = try ScratchDirectory()
            let path = try folder.write("socket", "text")
            let sentence =
                "server.unix_path is “\(path)”, which exists and is not a socket; remove it or name another path.\n"
            #expect(complaint(["server.unix_path=\(path)"]).hasSuffix(sentence))
            let outcome = try GifreelCommandLine.run(["serve", "--check", "--set", "server.unix_path=\(path)"])
            #expect(outcome.code == 1 && outcome.output.isEmpty && outcome.log == "gifreel: " + sentence, "\(outcome)")
            #expect(try folder.text("socket") == "text")
        }

        @Test func aGroupThatDoesNotExistIsNamed() throws {
            let folder = try ScratchDirectory()
            let settings = ["server.unix_path=\(folder.path)/socket", "server.unix_group=no such group"]
            let sentence = "server.unix_group cannot be used. The group no such group does not exist.\n"
            #expect(complaint(settings).hasSuffix(sentence))
            let outcome = try GifreelCommandLine.run(["serve", "--check"] + settings.flatMap { ["--set", $0] })
            #expect(outcome.code == 1 && outcome.output.isEmpty && outcome.log == "gifreel: " + sentence, "\(outcome)")
        }

        @Test func aPortFileThatCannotBeWrittenIsNamed() {
            #expect(
                complaint(["server.port_file=/no/such/directory/port"]).contains(
                    "server.port_file: /no/such/directory/port cannot be written: No such file or directory."))
        }

        /// The kernel applies no limit of threads to root.
        @Test(
            .enabled(if: geteuid() == 0 && access("/usr/bin/setpriv", X_OK) == 0, "needs root and setpriv"),
            arguments: 34...42)
        func aServerThatLacksThreadsDoesNotStartOrCanBeStopped(_ limit: Int) throws {
            let folder = try ScratchDirectory()
            let (user, port) = (Int.random(in: 100_000...1_000_000), folder.path + "/port")
            #expect(chmod(folder.path, 0o777) == 0)
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
            process.arguments =
                ["--reuid=\(user)", "--regid=\(user)", "--clear-groups", "prlimit", "--nproc=\(limit)"]
                + [GifreelProcess.executable.path, "serve", "--set", "server.port=0", "--set", "server.port_file=\(port)"]
                + ["--set", "cache.dir=\(folder.path)/cache"]
            try process.start()
            try blockUntil("the end or the port file") { !process.isRunning || access(port, F_OK) == 0 }
            process.terminate()
            #expect([0, 1].contains(process.waitForEnd(within: .seconds(60))))
        }

        @Test func aFileThatIsNotThereOrNoYAMLIsNamed() throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            #expect(
                complaint([], configuration: "/no/such.yaml").contains("The configuration file /no/such.yaml cannot be read"))
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            let file = directory.appendingPathComponent("a.yaml")
            try "server: [unclosed".write(to: file, atomically: true, encoding: .utf8)
            let text = complaint([], configuration: file.path)
            #expect(text.hasPrefix("gifreel: The configuration file \(file.path) is not valid YAML: line "))
            #expect(text.split(separator: "\n").count == 1)
        }

        @Test func variablesOfKubernetesAreIgnoredWithOneLineInTheLog() throws {
            let server = try GifreelProcess(
                environment: ["GIFREEL_PORT": "tcp://10.0.0.1:8080", "GIFREEL_SERVICE_HOST": "10.0.0.1"])
            let lines = server.log.split(separator: "\n").filter { $0.contains("Kubernetes") }
            #expect(lines.count == 1 && lines[0].contains("names=\"GIFREEL_PORT, GIFREEL_SERVICE_HOST"))
            #expect(
                complaint([], environment: ["GIFREEL_PROT": "1"]).contains(
                    "The environment variable GIFREEL_PROT sets no setting"))
        }

        @Test(arguments: [
            (
                "server.host=nonsense.invalid",
                "server.host cannot be used. The host nonsense.invalid cannot be resolved to an address."
            ),
            ("server.host=192.0.2.1", "server.host cannot be used. 192.0.2.1:0: this machine does not have the address."),
            ("limits.memory=1MiB", "limits.memory (--set) is “1MiB”; it must be a size from 64MiB to 1TiB"),
            ("transcode.queue_timeout=0", "transcode.queue_timeout (--set) is “0”; it must be a time from 1ms to 1d"),
            ("cache.dir=", "cache.dir (--set) is empty; it must be"),
            ("cache.dir=/dev/null/cache", "cache.dir is “/dev/null/cache”, but /dev/null is not a directory"),
            (
                "server.port_file=/no/such/port",
                "server.port_file is “/no/such/port”, but the directory /no/such does not exist"
            ),
            ("server.port_file=/tmp", "server.port_file is “/tmp”, which is a directory; name a file."),
            ("server.public_url=ftp://x/", "server.public_url is “ftp://x/”; it must be an http or https URL."),
            (
                "server.allow_origin=https://example.com/",
                "server.allow_origin is “https://example.com/”; it must be * or one origin as browsers write it"
            ),
            ("sources.user_agent=é", "sources.user_agent is “é”; it must be printable ASCII."),
            ("mounts.mp4.origin=https://a/", "mounts.mp4 cannot be used: /mp4 is a route of the server"),
            (
                "mounts.a.origin=ftp://x/",
                "mounts.a.origin is “ftp://x/”; it must be an http or https URL, s3://bucket/prefix or file:///directory."
            ),
            (
                "purge.hooks.CDN.url=https://a.test/",
                "purge.hooks.CDN cannot be used: a hook's name consists of a-z, 0-9, - and _."
            ),
            ("purge.hooks.cdn.url=http://", "purge.hooks.cdn.url is “http://”; it must be an http or https URL."),
            ("purge.hooks.cdn.url=https://a b/", "purge.hooks.cdn.url is “https://a b/”; it must be an http or https URL."),
            (
                "purge.hooks.cdn.scopes=",
                "purge.hooks.cdn.scopes is empty; it must name url, prefix, host, object or all."
            ),
            ("tracing.endpoint=http:///v1", "tracing.endpoint is “http:///v1”; it must be an http or https URL."),
            (
                "presets.sticker=width=480",
                "presets.sticker cannot be used: “sticker” is a built-in preset; choose another name."
            ),
            ("cache.max_age=500ms", "cache.max_age (--set) is “500ms”; it must be a time from 0s to 3650d in whole seconds"),
        ])
        func checkRefusesWhatCannotWork(_ setting: String, _ sentence: String) throws {
            let outcome = try GifreelCommandLine.run(["serve", "--check", "--set", setting])
            #expect(outcome.code == 1 && outcome.output.isEmpty)
            #expect(
                outcome.log.hasPrefix("gifreel: " + sentence) && outcome.log.split(separator: "\n").count == 1, "\(outcome.log)"
            )
        }

        /// What a service says that must not start because of these libraries.
        private func complaint(_ libraries: LinkedLibraries) throws -> String {
            let folder = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
            let zygote = try Zygote.spawn(executable: folder.appendingPathComponent("gifreel").path)
            defer {
                zygote.stop()
                try? FileManager.default.removeItem(at: directory)
            }
            var configuration = try ServiceConfiguration(Settings())
            configuration.cache.directory = directory.path
            do {
                _ = try GifreelService(
                    configuration: configuration, zygote: zygote, libraries: libraries, logger: Logger(label: "test"))
                return "it started"
            } catch {
                return "\(error)"
            }
        }

        @Test func librariesOfTheRightVersionWithAllEncodersAreTaken() throws {
            #expect(try complaint(.present) == "it started")
        }

        @Test func aMissingEncoderIsNamed() throws {
            var libraries = LinkedLibraries.present
            libraries.hasEncoder = { $0 != .mp4 }
            #expect(try complaint(libraries) == "libx264 is missing from libavcodec.")
            libraries.hasEncoder = { $0 != .png }
            #expect(try complaint(libraries) == "The encoder for png is missing from libavcodec.")
        }

        @Test func aLibraryThatIsTooOldIsNamed() throws {
            for index in LinkedLibraries.present.libraries.indices {
                var libraries = LinkedLibraries.present
                libraries.libraries[index].loaded = 1 << 16 | 2 << 8 | 100
                #expect(try complaint(libraries).hasPrefix("\(libraries.libraries[index].name) 1.2.100 is too old: "))
            }
        }
    }
}
