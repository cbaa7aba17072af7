import Foundation
import TestSupport
import Testing

@testable import Settings

@Suite("A file may hold a secret, in the environment and in the settings file") struct SecretFileTests {
    private let directory: ScratchDirectory
    private let secret: String

    init() throws {
        directory = try ScratchDirectory()
        secret = try directory.write("secret", "hunter2\r\n")
    }

    private func read(_ environment: [String: String] = [:], yaml: String? = nil) throws(SettingsError) -> SettingsReader.Result
    {
        let file = try? yaml.map { try directory.write("settings.yaml", $0) }
        return try SettingsReader.read(file: file ?? nil, environment: environment, flags: [])
    }

    private func complaint(_ environment: [String: String] = [:], yaml: String? = nil) -> String {
        #expect(throws: SettingsError.self) { try read(environment, yaml: yaml) }?.description ?? ""
    }

    @Test func aVariableNamesTheFile() throws {
        let result = try read(["GIFREEL_ADMIN_TOKEN_FILE": secret])
        #expect(result.settings.admin.token == "hunter2")
        #expect(result.lines.contains("admin.token: ***  # GIFREEL_ADMIN_TOKEN_FILE, \(secret)"))
        let named = try read([
            "GIFREEL_SIGNING_KEYS_BLOG_SECRET_FILE": secret, "GIFREEL_MOUNTS_A_B_S3_SECRET_KEY_FILE": secret,
            "GIFREEL_MOUNTS_A_B_ORIGIN": "s3://b/k",
        ]).settings
        #expect(named.signing.named["blog"]?.secret == "hunter2" && named.mounts["a_b"]?.s3.secretKey == "hunter2")
    }

    @Test func theSettingsFileNamesTheFile() throws {
        let settings = try read(yaml: "admin:\n  token: {file: \(secret)}\nsigning:\n  keys: {file: \(secret)}\n").settings
        #expect(settings.admin.token == "hunter2" && settings.signing.keys == ["hunter2"])
        let mixed = try read(
            yaml: "signing:\n  keys:\n  - one\n  - {file: \(secret)}\n  - {name: blog, secret: {file: \(secret)}}\n"
        ).settings
        #expect(mixed.signing.keys == ["one", "hunter2"] && mixed.signing.named["blog"]?.secret == "hunter2")
        // A key may be named so.
        let key = try read(yaml: "signing:\n  keys:\n    file: {secret: a}\n").settings
        #expect(key.signing.named["file"]?.secret == "a")
    }

    @Test func aFileOfAListHasOneValuePerLine() throws {
        let path = try directory.write("keys", "one\n\n two, too \nthree")
        let keys = ["one", "two, too", "three"]
        #expect(try read(["GIFREEL_SIGNING_KEYS_FILE": path]).settings.signing.keys == keys)
        #expect(try read(yaml: "signing: {keys: {file: \(path)}}\n").settings.signing.keys == keys)
    }

    /// As editors of Windows write them.
    @Test func aByteOrderMarkIsNoPartOfASecret() throws {
        let path = try directory.write("marked", "\u{feff}one\r\ntwo\r\n")
        #expect(try read(["GIFREEL_SIGNING_KEYS_FILE": path]).settings.signing.keys == ["one", "two"])
        let yaml = "\u{feff}signing: {keys: {file: \(path)}}\r\n"
        #expect(try read(yaml: yaml).settings.signing.keys == ["one", "two"])
        let empty = try directory.write("empty", "\u{feff}\r\n")
        #expect(complaint(["GIFREEL_ADMIN_TOKEN_FILE": empty]).hasSuffix("is empty."))
        #expect(try TextFile.bytes(of: path, atMost: 100).starts(with: "one".utf8))
    }

    @Test func aFileThatIsNotUTF8IsRefused() throws {
        let path = directory.path("bytes")
        try Data([0x6b, 0xff, 0x80]).write(to: URL(fileURLWithPath: path))
        #expect(complaint(["GIFREEL_SIGNING_KEYS_FILE": path]) == "The file \(path) of signing.keys is not text in UTF-8.")
        #expect(throws: SettingsError("The configuration file \(path) is not text in UTF-8.")) {
            try SettingsReader.read(file: path, environment: [:], flags: [])
        }
    }

    @Test func eachReadingReadsTheFile() throws {
        #expect(try read(["GIFREEL_ADMIN_TOKEN_FILE": secret]).settings.admin.token == "hunter2")
        _ = try directory.write("secret", "hunter3")
        #expect(try read(["GIFREEL_ADMIN_TOKEN_FILE": secret]).settings.admin.token == "hunter3")
    }

    @Test func everySecretHasSuchAVariableAndNoOtherSetting() throws {
        for setting in Setting.all where setting.name != "server.port" {
            let variable = setting.environmentName.replacing("NAME", with: "A") + "_FILE"
            let entries = try? EnvironmentVariables([variable: "/f"]).entries
            let path = entries?.values.first.map { if case .file(let path)? = $0.parts.first { path } else { "" } }
            // A variable of a preset consists of its name alone.
            #expect((path == "/f") == setting.isSecret || setting.group == "presets", "\(variable)")
        }
        let port = try EnvironmentVariables(["GIFREEL_SERVER_PORT_FILE": "/f"]).entries
        #expect(port.keys.sorted() == ["server.port_file"])
    }

    @Test func aFileThatIsMissingOrEmptyStopsTheStart() throws {
        let missing = "The file /no/such of admin.token cannot be read: No such file or directory."
        #expect(complaint(["GIFREEL_ADMIN_TOKEN_FILE": "/no/such"]) == missing)
        #expect(complaint(yaml: "admin: {token: {file: /no/such}}\n") == missing)
        let empty = try directory.write("empty", " \n\n")
        #expect(
            complaint(["GIFREEL_SIGNING_KEYS_FILE": empty])
                == "The file \(empty) of signing.keys (GIFREEL_SIGNING_KEYS_FILE) is empty.")
        #expect(
            complaint(["GIFREEL_ADMIN_TOKEN_FILE": ""])
                == "The environment variable GIFREEL_ADMIN_TOKEN_FILE is empty; it must be the path of a file.")
        // A file that another source overrides is not read.
        let overridden = try read(["GIFREEL_ADMIN_TOKEN": "t"], yaml: "admin: {token: {file: /no/such}}\n")
        #expect(overridden.settings.admin.token == "t")
    }

    @Test func aTextAndAFileOfOneSecretAreRefused() {
        #expect(
            complaint(["GIFREEL_ADMIN_TOKEN": "t", "GIFREEL_ADMIN_TOKEN_FILE": secret])
                == "GIFREEL_ADMIN_TOKEN_FILE and GIFREEL_ADMIN_TOKEN are both set; unset one of them.")
    }

    @Test func theTextOfAFileIsInNoMessage() throws {
        let path = try directory.write("lines", "hunter2\nsecond")
        let message = complaint(["GIFREEL_ADMIN_TOKEN_FILE": path])
        #expect(message.hasPrefix("admin.token (GIFREEL_ADMIN_TOKEN_FILE, \(path)) has a wrong value"))
        #expect(!message.contains("hunter2"))
    }

    @Test func onlySecretsMayBeFiles() {
        #expect(complaint(yaml: "log: {level: {file: \(secret)}}\n").hasSuffix("line 1: log.level must be one value."))
    }
}

@Suite("A reading reports the origin of each value") struct SettingOriginTests {
    @Test func linesNameFlagVariableFileOrDefault() throws {
        let directory = try ScratchDirectory()
        let file = try directory.write("s.yaml", "server:\n  port: 1\n  threads: 2\nmounts:\n  a:\n    origin: https://a/\n")
        let result = try SettingsReader.read(
            file: file, environment: ["GIFREEL_SERVER_THREADS": "3"], flags: ["server.host=::1"])
        for line in [
            "server.host: ::1  # --set", "server.port: 1  # \(file), line 2", "server.threads: 3  # GIFREEL_SERVER_THREADS",
            "server.idle_timeout: 75s  # default", "mounts.a.origin: https://a/  # \(file), line 6",
            "mounts.a.negotiate: false  # default",
        ] {
            #expect(result.lines.contains(line), "\(line)")
        }
    }

    @Test func aVariableThatOverridesTheFileIsReported() throws {
        let directory = try ScratchDirectory()
        let file = try directory.write("s.yaml", "server:\n  port: 1\n  threads: 2\n  host: ::1\n")
        let environment = ["GIFREEL_SERVER_PORT": "4", "GIFREEL_SERVER_THREADS": "5", "GIFREEL_CACHE_DIR": "d"]
        let result = try SettingsReader.read(file: file, environment: environment, flags: ["server.port=6"])
        // The flag overrides both, and is in the command line.
        let threads = SettingsReader.Override(
            setting: "server.threads", variable: "GIFREEL_SERVER_THREADS", overridden: "\(file), line 3")
        #expect(result.overrides == [threads])
    }
}
