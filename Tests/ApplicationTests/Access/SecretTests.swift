import Foundation
import TestSupport
import Testing

@Suite("Secrets are neither missing without notice nor shown", .timeLimit(.minutes(10))) struct SecretTests {
    private func check(_ environment: [String: String] = [:], _ arguments: [String] = []) throws -> ChildProcess.Outcome {
        try GifreelCommandLine.run(["serve", "--check"] + arguments, environment: environment)
    }

    @Test(arguments: [
        "SIGNING_KEYS", "SIGNING_KEYS_BLOG_SECRET", "ADMIN_TOKEN", "ADMIN_PREVIOUS_TOKEN", "WEBHOOKS_KEY",
        "STORE_S3_ACCESS_KEY",
        "STORE_S3_SECRET_KEY", "CLUSTER_REDIS", "MOUNTS_M_HEADERS", "MOUNTS_M_S3_SECRET_KEY", "PURGE_HOOKS_X_HEADERS",
        "TRACING_HEADERS",
    ])
    func anEmptyVariableStopsTheStart(name: String) throws {
        for value in ["", " ", ","] {
            // A comma separates items of lists only.
            if value == ",", name != "SIGNING_KEYS", !name.hasSuffix("HEADERS") { continue }
            let outcome = try check(["GIFREEL_\(name)": value])
            #expect(outcome.code == 1 && outcome.log.contains("(GIFREEL_\(name)) is empty"), "\(outcome)")
        }
    }

    @Test func anEmptyItemAmongOthersIsAKeyThatWasRemoved() throws {
        #expect(try check(["GIFREEL_SIGNING_KEYS": "an-example-key-of-at-least-32-bytes,"]).code == 0)
    }

    @Test func aSecretThatMayBeGuessedIsReported() throws {
        for (name, value, isWeak) in [
            ("ADMIN_TOKEN", "abc", true), ("ADMIN_TOKEN", "aaaaaaaaaaaaaaaaaaaaaaaa", true),
            ("ADMIN_TOKEN", "4f1c9a0be7d25836", false),
            ("WEBHOOKS_KEY", "4f1c9a0be7d25836", true), ("SIGNING_KEYS", "4f1c9a0be7d25836", true),
        ] {
            let outcome = try check(["GIFREEL_\(name)": value])
            #expect(outcome.code == 0 && outcome.log.contains("may be guessed") == isWeak, "\(name) \(outcome)")
            #expect(!outcome.log.contains(value))
        }
        let server = try GifreelProcess(["admin.token=abc"])
        try blockUntil("the warning") { server.log.contains("admin.token has fewer than 16 bytes and may be guessed") }
    }

    /// The hosts and the rate of the second key would be ignored without notice.
    @Test(arguments: [
        (["SIGNING_KEYS", "SIGNING_KEYS_BLOG_SECRET"], true), (["SIGNING_KEYS_ABC_SECRET", "SIGNING_KEYS_BLOG_SECRET"], true),
        (["SIGNING_KEYS", "ADMIN_TOKEN", "WEBHOOKS_KEY"], false), (["SIGNING_KEYS_BLOG_SECRET"], false),
    ])
    func aSecretOfTwoKeysIsReported(_ names: [String], _ isReported: Bool) throws {
        let secret = "an-example-key-of-at-least-32-bytes"
        let variables = Dictionary(uniqueKeysWithValues: names.map { ("GIFREEL_\($0)", secret) })
        let outcome = try check(variables, ["--set", "signing.keys.other.secret=\(secret)-2"])
        let warning = "signing.keys.blog.secret is another key's too, whose hosts and rate apply"
        #expect(outcome.code == 0 && outcome.log.contains(warning) == isReported && !outcome.log.contains(secret), "\(outcome)")
    }

    @Test func theTokenBeforeNeedsItsSuccessor() throws {
        let outcome = try check(["GIFREEL_ADMIN_PREVIOUS_TOKEN": "4f1c9a0be7d25836"])
        #expect(outcome.code == 1 && outcome.log.contains("admin.token is not"), "\(outcome)")
    }

    @Test func tokensComeFromFiles() throws {
        let directory = try ScratchDirectory()
        for (name, text) in [("new", "the-new-token-123\n"), ("old", "the-old-token-123\n")] {
            try text.write(toFile: directory.path(name), atomically: true, encoding: .utf8)
        }
        let file = directory.path("settings.yaml")
        try "admin:\n  token: {file: \(directory.path("new"))}\n  previous_token: {file: \(directory.path("old"))}\n"
            .write(toFile: file, atomically: true, encoding: .utf8)
        let server = try GifreelProcess([], configuration: file)
        for (token, status) in [("the-new-token-123", 200), ("the-old-token-123", 200), ("another", 401)] {
            #expect(try server.request("GET", "/cache", headers: ["Authorization: Bearer \(token)"]).status == status)
        }
    }

    @Test func errorsShowNoSecret() throws {
        let field = "Authorization: Bearer a,hunter2"
        let outcomes = [
            try check(["GIFREEL_MOUNTS_M_HEADERS": field, "GIFREEL_MOUNTS_M_ORIGIN": "http://a.test/"]),
            try check(["GIFREEL_PURGE_HOOKS_X_HEADERS": field, "GIFREEL_PURGE_HOOKS_X_URL": "http://a.test/"]),
            try check(["GIFREEL_TRACING_HEADERS": field, "GIFREEL_TRACING_ENDPOINT": "http://a.test/"]),
            try check([:], ["--set", "admin.token:hunter2"]), try check([:], ["--set", "hunter2"]),
            try check([:], ["--set", "mounts.m.origin=http://user:hunter2@a.test/"]),
            try check([:], ["--set", "purge.hooks.x.url=ftp://user:hunt@hunter2@a.test/"]),
            try check([:], ["--set", "server.public_url=http://user:hunter2@a.test/"]),
            try check([:], ["--set", "cluster.redis=http://:hunter2@a.test"]),
        ]
        for outcome in outcomes {
            #expect(outcome.code == 1 && !outcome.log.isEmpty && !outcome.log.contains("hunter2"), "\(outcome)")
        }
        #expect(outcomes[0].log.contains("mounts.m.headers: number 2 of 2"))
    }

    /// A proxy of the environment would read it.
    @Test func noProxyGetsTheAdminToken() throws {
        let proxy = try LoopbackOrigin()
        defer { proxy.stop() }
        let list = try ScratchDirectory()
        try "http://a.test/a.gif\n".write(toFile: list.path("list"), atomically: true, encoding: .utf8)
        let server = try GifreelProcess(["admin.token=4f1c9a0be7d25836"])
        let address = "http://127.0.0.1:\(server.port)"
        let environment = ["http_proxy": proxy.url(""), "ALL_PROXY": proxy.url(""), "GIFREEL_ADMIN_TOKEN": "4f1c9a0be7d25836"]
        for command in [["purge", "--all"], ["cache"], ["prewarm", "--list-jobs"], ["prewarm", list.path("list")]] {
            let outcome = try GifreelCommandLine.run(command + ["--server", address], environment: environment)
            #expect(!outcome.log.contains("cannot be"), "\(command) \(outcome)")
        }
        #expect(proxy.connections == 0)
    }

    @Test func aKeySignsOnlyWhatTheServerAccepts() throws {
        let environment = [
            "GIFREEL_SIGNING_KEYS_BLOG_SECRET": "an-example-key-of-at-least-32-bytes",
            "GIFREEL_SIGNING_KEYS_BLOG_HOSTS": "media.test",
        ]
        func sign(_ arguments: String..., more: [String: String] = [:]) throws -> ChildProcess.Outcome {
            try GifreelCommandLine.run(["sign"] + arguments, environment: environment.merging(more) { $1 })
        }
        for key in [[], ["--key", "blog"]] as [[String]] {
            let run = { (words: [String]) in try GifreelCommandLine.run(["sign"] + key + words, environment: environment) }
            #expect(try run(["https://media.test/a.gif"]).code == 0)
            for words in [["https://other.test/a.gif"], ["--upload"]] {
                let outcome = try run(words)
                #expect(outcome.code == 1 && outcome.output.isEmpty && outcome.log.contains("hosts of the key"), "\(outcome)")
            }
        }
        let narrow = ["GIFREEL_SOURCES_ALLOW": "media.test/up/"]
        #expect(try sign("https://media.test/up/a.gif", more: narrow).code == 0)
        let refused = try sign("https://media.test/up/..;x/a.gif", more: narrow)
        #expect(refused.code == 1 && refused.log.contains("sources.allow"), "\(refused)")
    }
}
