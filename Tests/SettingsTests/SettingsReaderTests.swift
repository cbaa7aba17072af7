import Fetch
import Foundation
import HTTP
import Store
import Testing

@testable import Settings

@Suite("Settings are read from flags, environment, file and defaults, in this order") final class SettingsReaderTests {
    private let directory = FileManager.default.temporaryDirectory.appendingPathComponent("settings-\(UUID().uuidString)")

    init() throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: directory) }

    private func file(_ text: String) throws -> String {
        let url = directory.appendingPathComponent("settings.yaml")
        try text.write(to: url, atomically: true, encoding: .utf8)
        return url.path
    }

    private func read(
        _ yaml: String? = nil, _ environment: [String: String] = [:], _ flags: [String] = []
    ) throws -> Settings {
        try SettingsReader.read(file: yaml.map { try file($0) }, environment: environment, flags: flags).settings
    }

    private func complaint(
        _ yaml: String? = nil, _ environment: [String: String] = [:], _ flags: [String] = []
    ) throws -> String {
        do throws(SettingsError) {
            let path = try? yaml.map { try file($0) }
            _ = try SettingsReader.read(file: path ?? nil, environment: environment, flags: flags)
            return ""
        } catch {
            #expect(!error.description.contains("\n") && !error.description.contains("Error Domain"))
            return error.description.replacingOccurrences(of: directory.path, with: "DIR")
        }
    }

    @Test func aFlagOverridesAVariableWhichOverridesTheFileWhichOverridesTheDefault() throws {
        let yaml = "server:\n  port: 1\n  threads: 2\n  max_connections: 3\n"
        let variables = ["GIFREEL_SERVER_PORT": "4", "GIFREEL_SERVER_THREADS": "5", "OTHER": "x"]
        let settings = try read(yaml, variables, ["server.port=6", "server.port=7"])
        #expect(settings.http.port == 7 && settings.http.threads == 5 && settings.http.maxConnections == 3)
        #expect(settings.http.idleTimeout == .seconds(75))
    }

    @Test func listsAreYAMLListsOrSeparatedByCommas() throws {
        #expect(try read("sources:\n  ports: [80, 81]\n").fetch.ports.ranges == [80...80, 81...81])
        #expect(try read("sources:\n  ports: 80, 81\n").fetch.ports.ranges == [80...80, 81...81])
        #expect(try read(nil, ["GIFREEL_SOURCES_PORTS": "80,81"]).fetch.ports.ranges == [80...80, 81...81])
        #expect(try read(nil, [:], ["sources.ports=80, 81"]).fetch.ports.ranges == [80...80, 81...81])
        #expect(try read(nil, [:], ["sources.ports=8000-8999"]).fetch.ports.ranges == [8000...8999])
        #expect(try complaint(nil, [:], ["sources.ports=9-8"]).hasPrefix("sources.ports (--set) is “9-8”; it must be a port"))
        #expect(try read("signing:\n  keys: []\n").signing.keys == [])
    }

    @Test func anEmptyValueUnsetsWhatCanBeUnset() throws {
        let settings = try read("server:\n  allow_origin: \"\"\nadmin:\n  token: \"\"\n", ["GIFREEL_TRANSCODE_WORKERS": ""])
        #expect(settings.server.allowOrigin == nil && settings.admin.token == nil && settings.transcode.workers == nil)
    }

    /// As where a deployment leaves a variable unset.
    @Test(arguments: [
        "admin.token", "signing.keys", "signing.keys.blog.secret", "mounts.m.headers", "cluster.redis", "webhooks.key",
    ])
    func anEmptySecretIsRefused(_ name: String) throws {
        let variable = "GIFREEL_" + name.uppercased().replacing(".", with: "_")
        for text in ["", " ", ",", " , "] {
            #expect(try complaint(nil, [variable: text]) == "\(name) (\(variable)) is empty; give it a value or remove it.")
            #expect(try complaint(nil, [:], ["\(name)=\(text)"]) == "\(name) (--set) is empty; give it a value or remove it.")
        }
    }

    @Test(arguments: ["\"\"", "[\"\"]", "[\"\", \" \"]", "[\",\"]", "[\"\", {name: blog, secret: a}]", "[null]", "[~, \"\"]"])
    func anEmptySecretInAListIsRefused(_ list: String) throws {
        #expect(
            try complaint("signing:\n  keys: \(list)\n")
                == "signing.keys (DIR/settings.yaml, line 2) is empty; give it a value or remove it.")
        #expect(try complaint("mounts.m: {origin: \"https://a/\", headers: \(list)}\n") != "")
    }

    @Test func aListOfSecretsNeedsOneThatIsNotEmpty() throws {
        #expect(try read("signing:\n  keys: [\"\", a]\n").signing.keys == ["a"])
        #expect(try read("signing:\n  keys: [~, a, Null]\n").signing.keys == ["a"])
        #expect(try read("signing:\n  keys: [\"~\", 'null']\n").signing.keys == ["~", "null"])
        #expect(try read("signing:\n  keys: [{name: blog, secret: a}]\n").signing.keys == [])
    }

    @Test(arguments: [
        ("signing:\n  keys:\n    blog:\n", "line 3: signing.keys.blog"),
        ("signing:\n  keys:\n    blog: {}\n", "line 3: signing.keys.blog"),
        ("signing:\n  keys:\n  - name: blog\n", "line 3: signing.keys.blog"),
        ("signing.keys.blog: ~\n", "line 1: signing.keys.blog"),
        ("mounts:\n  media:\n    # origin: https://a/\n", "line 2: mounts.media"),
        ("purge:\n  hooks:\n    cdn: {}\n", "line 3: purge.hooks.cdn"),
        ("mounts:\n  media: {s3: {}}\n", "line 2: mounts.media"),
    ])
    func aMemberOfAFamilyNeedsASetting(_ yaml: String, _ place: String) throws {
        #expect(try complaint(yaml) == "DIR/settings.yaml, \(place) has no settings; give it some or remove it.")
        let variables = [
            "GIFREEL_SIGNING_KEYS_BLOG_SECRET": "a", "GIFREEL_MOUNTS_MEDIA_ORIGIN": "https://a/",
            "GIFREEL_PURGE_HOOKS_CDN_URL": "https://a/",
        ]
        #expect(try read(yaml, variables).signing.named["blog"]?.secret == "a")
    }

    /// Such as the host of a site, as a name.
    @Test func aMemberWhoseNameHasADotIsRefused() throws {
        for key in ["{name: a.b}", "{name: a.b, secret: a}"] {
            #expect(
                try complaint("signing:\n  keys: [\(key)]\n").hasPrefix(
                    "DIR/settings.yaml, line 2: there is no setting named signing.keys.a.b."))
        }
    }

    /// Bytes of flags and variables that are not UTF-8 arrive as replacement characters.
    @Test(arguments: ["signing.keys", "admin.token", "pages.site_name", "cache.dir"])
    func aValueThatIsNotUTF8IsRefused(_ name: String) throws {
        let variable = "GIFREEL_" + name.uppercased().replacing(".", with: "_")
        for sentence in [
            try complaint(nil, [variable: "a\u{fffd}b"]), try complaint(nil, [:], ["\(name)=a\u{fffd}b"]),
        ] {
            #expect(sentence.hasPrefix("\(name) (") && sentence.contains("; it must be UTF-8 text"), "\(sentence)")
        }
    }

    @Test func anEmptyCacheDirectoryIsRefused() throws {
        #expect(try complaint(nil, [:], ["cache.dir="]).hasPrefix("cache.dir (--set) is empty; it must be "))
    }

    @Test func mountsAreReadFromEverySource() throws {
        let settings = try read(
            "mounts:\n  a_b:\n    origin: https://a/\n    fresh_for: 1h\n", ["GIFREEL_MOUNTS_A_B_NEGOTIATE": "true"],
            ["mounts.c.origin=https://c/", "mounts.c.allow=x/,y/"])
        #expect(settings.mounts["a_b"]?.origin == "https://a/" && settings.mounts["a_b"]?.negotiate == true)
        #expect(settings.mounts["a_b"]?.freshFor == .seconds(3600) && settings.mounts["c"]?.allow == ["x/", "y/"])
        #expect(try complaint(nil, [:], ["mounts.c.negotiate=true"]) == "mounts.c.origin is missing; a mount needs an origin.")
    }

    @Test func aWrongValueIsNamedWithItsOriginAndWhatItMustBe() throws {
        #expect(
            try complaint("a:\n", [:], []).hasPrefix("DIR/settings.yaml, line 1: there is no setting named a."))
        #expect(
            try complaint("server:\n  port: eighty\n")
                == "server.port (DIR/settings.yaml, line 2) is “eighty”; it must be a whole number from 0 to 65535.")
        #expect(
            try complaint("pages:\n  site_name: |\n    a\n    b\n")
                == "pages.site_name (DIR/settings.yaml, line 2) is “a b ”; it must be UTF-8 text of at least one character, "
                + "without control characters.")
        #expect(
            try complaint(nil, ["GIFREEL_CACHE_MAX_AGE": "1 week"])
                == "cache.max_age (GIFREEL_CACHE_MAX_AGE) is “1 week”; it must be a time from 0s to 3650d in whole seconds, "
                + "such as 10s.")
        #expect(
            try complaint(nil, [:], ["sources.timeout=2d"])
                == "sources.timeout (--set) is “2d”; it must be a time from 1ms to 1d, such as 10s.")
        #expect(
            try complaint(nil, [:], ["sources.max_bytes=3GiB"])
                == "sources.max_bytes (--set) is “3GiB”; it must be a size from 64B to 2GiB, such as 20MiB.")
        #expect(try complaint(nil, [:], ["log.format=xml"]) == "log.format (--set) is “xml”; it must be one of text, json.")
        #expect(try complaint(nil, [:], ["sources.ports=80,0"]).hasPrefix("sources.ports (--set) is “0”; it must be "))
    }

    @Test(arguments: [
        ("cache.fresh_for", "500ms"), ("cache.stale_for", "1.5s"), ("cache.min_fresh_for", "500ms"),
        ("cache.max_fresh_for", "90.5"), ("cache.max_age", "500ms"), ("cache.cdn_max_age", "0.0001h"),
        ("mounts.m.fresh_for", "500ms"), ("mounts.m.max_age", "1001ms"), ("limits.cpu", "1900ms"),
    ]) func aTimeThatIsUsedInWholeSecondsHasNoFraction(_ name: String, _ text: String) throws {
        let range = name == "limits.cpu" ? "1s to 1d" : "0s to 3650d"
        #expect(
            try complaint(nil, [:], ["\(name)=\(text)"])
                == "\(name) (--set) is “\(text)”; it must be a time from \(range) in whole seconds, such as 10s.")
        // Whole seconds may be written in any unit.
        _ = try read(nil, [:], ["\(name)=120000ms", "cache.min_fresh_for=0", "mounts.m.origin=https://a/"])
    }

    @Test(arguments: ["https://metrics.test", "http://metrics.test:81", "metrics.test/x"])
    func aHostOfMetricsHasNeitherSchemeNorPath(_ text: String) throws {
        #expect(
            try complaint(nil, [:], ["metrics.hosts=\(text)"])
                == "metrics.hosts is “\(text)”; it must be a host without scheme and path.")
    }

    @Test func aSecretIsInNoMessage() throws {
        let message = try complaint(nil, ["GIFREEL_ADMIN_TOKEN": "hunter2\n"])
        #expect(message.hasPrefix("admin.token (GIFREEL_ADMIN_TOKEN) has a wrong value") && !message.contains("hunter2"))
        #expect(try !read(nil, ["GIFREEL_ADMIN_TOKEN": "hunter2"]).lines.contains { $0.contains("hunter2") })
    }

    @Test func aSecretInAURLIsNotListed() throws {
        let yaml = """
            tracing:
              endpoint: https://u:p%40ss@traces.test/v1?token=SECRET
            mounts:
              a:
                origin: https://a.test/
            purge:
              hooks:
                cdn:
                  url: https://u:hunter2@h.test/x?token=SECRET&u={url}
                plain:
                  url: https://h.test/x
            """
        let result = try SettingsReader.read(file: try file(yaml), environment: [:], flags: [])
        for lines in [result.lines, result.changedLines, result.settings.lines] {
            for line in [
                "tracing.endpoint: https://***@traces.test/v1?***", "mounts.a.origin: https://a.test/",
                "purge.hooks.cdn.url: https://***@h.test/x?***", "purge.hooks.plain.url: https://h.test/x",
            ] {
                #expect(lines.contains { $0 == line || $0.hasPrefix(line + "  # ") }, "\(line)")
            }
            #expect(!lines.contains { $0.contains("SECRET") || $0.contains("hunter2") || $0.contains("p%40ss") })
        }
    }

    @Test func aPasswordWithAnAtSignIsInNoMessage() throws {
        let message = try complaint(nil, [:], ["server.port=http://u:p@hunter2@h.test/x"])
        #expect(message.contains("“http://***@h.test/x”"))
    }

    @Test func onlyValuesThatAreNotTheDefaultsAreChanged() throws {
        #expect(try SettingsReader.read(file: nil, environment: [:], flags: []).changedLines.isEmpty)
        let yaml =
            "cache:\n  max_bytes: 10GiB\n  dir: /srv/cache\nmounts:\n  a:\n    origin: https://a.test/\n    negotiate: false\n"
        let changed = try SettingsReader.read(
            file: try file(yaml), environment: ["GIFREEL_ADMIN_TOKEN": "hunter2hunter2hu"],
            flags: ["server.port=8080", "log.format=json"]
        ).changedLines
        #expect(changed.count == 4, "\(changed)")
        #expect(changed.contains { $0.hasPrefix("cache.dir: /srv/cache  # ") && $0.hasSuffix("; default var/cache") })
        #expect(changed.contains { $0.hasPrefix("mounts.a.origin: https://a.test/  # ") })
        #expect(changed.contains { $0.hasPrefix("admin.token: ***  # GIFREEL_ADMIN_TOKEN; default ") })
        #expect(changed.contains("log.format: json  # --set; default text"))
    }

    @Test func anUnknownNameSuggestsTheNearest() throws {
        #expect(
            try complaint(nil, [:], ["server.prot=1"])
                == "--set: there is no setting named server.prot. Did you mean server.port?")
        #expect(try complaint(nil, [:], ["max_age=1"]).hasSuffix("Did you mean cache.max_age?"))
        #expect(
            try complaint("mounts:\n  a:\n    orign: x\n").hasSuffix(
                "line 3: there is no setting named mounts.a.orign. Did you mean mounts.a.origin?"))
        #expect(try complaint(nil, ["GIFREEL_SERVR_PORT": "1"]).hasSuffix("Did you mean GIFREEL_SERVER_PORT?"))
        #expect(try complaint(nil, [:], ["quite.another=1"]).hasSuffix("gifreel settings lists all of them."))
    }

    /// For services named `gifreel`, `gifreel-api`, `gifreel-server` (a group of settings) and `gifreel-service-port`.
    @Test(arguments: ["GIFREEL", "GIFREEL_API", "GIFREEL_SERVER", "GIFREEL_SERVICE_PORT"])
    func variablesThatKubernetesInjectsAreIgnoredAndReported(_ service: String) throws {
        let injected = [
            "PORT": "tcp://10.0.0.1:8080", "SERVICE_HOST": "10.0.0.1", "SERVICE_PORT": "8080",
            "SERVICE_PORT_HTTP_METRICS": "8080", "PORT_8080_TCP": "tcp://10.0.0.1:8080", "PORT_8080_TCP_PROTO": "tcp",
            "PORT_8080_TCP_PORT": "8080", "PORT_8080_TCP_ADDR": "10.0.0.1",
        ].map { ("\(service)_\($0)", $1) }
        let result = try SettingsReader.read(file: nil, environment: Dictionary(uniqueKeysWithValues: injected), flags: [])
        #expect(result.settings == Settings() && result.ignoredVariables == injected.map(\.0).sorted())
        // No setting can be mistaken for one of them.
        #expect(Setting.all.allSatisfy { !["service", "port"].contains($0.group) })
    }

    @Test func aSettingIsReadBesideAServiceOfItsName() throws {
        let environment = ["GIFREEL_SERVER_PORT": "9000", "GIFREEL_SERVER_SERVICE_HOST": "10.0.0.1"]
        let result = try SettingsReader.read(file: nil, environment: environment, flags: [])
        #expect(result.settings.http.port == 9000 && result.ignoredVariables == ["GIFREEL_SERVER_SERVICE_HOST"])
    }

    @Test(arguments: ["GIFREEL_PORT", "GIFREEL_PORT_8080", "GIFREEL_PORT_X_TCP", "GIFREEL_SERVICE", "GIFREEL_SERVICE_HOSTS"])
    func otherVariablesStopTheStart(_ variable: String) throws {
        let message = try complaint(nil, [variable: "9000"])
        #expect(message.hasPrefix("The environment variable \(variable) sets no setting"))
        if variable == "GIFREEL_PORT" { #expect(message.hasSuffix("Did you mean GIFREEL_SERVER_PORT?")) }
    }

    @Test(arguments: [
        "server: [unclosed", "server:\n  port: 1\n bad: 2\n", "a: \"b", "server:\n  port: 1\n  port: 2\n", "\tx: 1",
        "- a\n- b\n", "server: 5\n", "server:\n  port:\n", "server:\n  port: [1, 2]\n", "server:\n  port: {a: 1}\n", "&a *b",
    ])
    func aFileThatIsWrongIsNamedOnOneLine(_ yaml: String) throws {
        let message = try complaint(yaml)
        #expect(message.contains("DIR/settings.yaml"), "\(message)")
    }

    @Test(arguments: [
        (
            "signing:\n  keys:\n    - name: team\n      secret: a\n    - {name: team, secret: b}\n",
            "line 5: signing.keys has two entries named team."
        ),
        (
            "mounts:\n  - name: a\n    origin: https://a/\n  - name: a\n    fresh_for: 1h\n",
            "line 4: mounts has two entries named a."
        ),
        (
            "server: {port: 1}\nserver.port: 2\n",
            "line 2: server.port is set twice; the other place is DIR/settings.yaml, line 1."
        ),
        (
            "signing.keys: [a]\nsigning:\n  keys:\n    - b\n    - {name: team, secret: c}\n",
            "line 3: signing.keys is set twice; the other place is DIR/settings.yaml, line 1."
        ),
        (
            "mounts.a.origin: https://a/\nmounts:\n  - name: a\n    origin: https://b/\n",
            "line 4: mounts.a.origin is set twice; the other place is DIR/settings.yaml, line 1."
        ),
    ])
    func whatIsSetTwiceIsNamedWithItsPlace(_ yaml: String, _ sentence: String) throws {
        #expect(try complaint(yaml) == "DIR/settings.yaml, \(sentence)")
    }

    @Test func oneMemberMayBeInSeveralPlaces() throws {
        let settings = try read("mounts:\n  - name: a\n    origin: https://a/\nmounts.a.fresh_for: 1h\n")
        #expect(settings.mounts["a"]?.origin == "https://a/" && settings.mounts["a"]?.freshFor == .seconds(3600))
    }

    @Test func aFileThatCannotBeReadIsNamedWithTheReason() throws {
        do throws(SettingsError) {
            _ = try SettingsReader.read(file: "/no/such.yaml", environment: [:], flags: [])
            Issue.record("It was read.")
        } catch {
            #expect(error.description == "The configuration file /no/such.yaml cannot be read: No such file or directory.")
        }
    }

    @Test func emptyFilesAndGroupsKeepTheDefaults() throws {
        #expect(try read("") == Settings())
        #expect(try read("# nothing\n") == Settings())
        #expect(try read("cache:\n  # dir: x\nserver: ~\n") == Settings())
    }

    @Test func combinationsThatCannotWorkAreRefused() throws {
        #expect(try complaint(nil, [:], ["server.host="]).contains("server.unix_path"))
        #expect(try complaint(nil, [:], ["server.host=", "server.unix_path=x"]) == "")
        #expect(try complaint(nil, [:], ["server.unix_path=" + String(repeating: "x", count: 108)]).contains("108 bytes"))
        #expect(try complaint(nil, [:], ["cache.min_fresh_for=2h", "cache.max_fresh_for=1h"]).contains("(2h) is longer"))
        #expect(try complaint(nil, [:], ["sources.require_signature=true"]).contains("signing.keys"))
        #expect(try complaint(nil, [:], ["sources.ports="]).contains("sources.ports is empty"))
    }

    @Test func aSettingWithoutTheOneThatUsesItIsRefused() throws {
        #expect(try complaint(nil, [:], ["tracing.headers=X-Key: 1"]).contains("tracing.endpoint is not"))
        #expect(try complaint(nil, [:], ["tracing.headers=X-Key: 1", "tracing.endpoint=http://a.test/"]) == "")
        let mount = "mounts.m.origin=S3://pics/in/"
        for name in ["prefix", "endpoint", "access_key", "secret_key"] {
            let setting = "store.s3.\(name)=x"
            let words = "store.s3.\(name) is set but store.s3.bucket is not"
            #expect(try complaint(nil, [:], [setting]).contains(words))
            #expect(try complaint(nil, [:], [setting, "store.s3.bucket=b"]) == "")
            // An s3:// origin uses the service and the keys of the store, but not its prefix.
            #expect(try complaint(nil, [:], [setting, mount]).contains(words) == (name == "prefix"))
            #expect(try complaint(nil, [:], [setting, "mounts.m.origin=https://a.test/"]).contains(words))
        }
        // A reload that removes the mount and its keys keeps the keys until the restart.
        var reloaded = Settings()
        reloaded.store.s3.accessKey = "x"
        try reloaded.validate()
    }
}

@Suite("Quantities have a unit and one canonical text") struct QuantityTests {
    @Test func sizesAndTimesAreWrittenAsTheyAreRead() {
        for text in ["0B", "1B", "1KiB", "1500MiB", "10GiB", "3TiB"] {
            #expect(ByteCount(settingText: text)?.settingText == text)
        }
        for text in ["0ms", "1ms", "1500ms", "90s", "5m", "36h", "7d"] {
            #expect(Duration(settingText: text)?.settingText == text)
        }
        #expect(ByteCount(settingText: "1.5 GiB")?.bytes == 1536 << 20)
        #expect(Duration(settingText: "90") == .seconds(90))
    }

    @Test(arguments: ["", "x", "-1", "1 week", "1e3", "½", "٣", "9223372036854775807TiB", "99999999999999999999", "1..2", "."])
    func otherTextsAreRefused(_ text: String) {
        #expect(ByteCount(settingText: text) == nil && Duration(settingText: text) == nil)
    }
}

@Suite("A reload applies live settings and names those that need a restart") struct ReloadPlanTests {
    @Test func liveSettingsChangeAndOthersKeepTheirValue() {
        var old = Settings()
        old.mounts["a"] = Settings.Mount()
        var new = Settings()
        new.lifetimes.maxAge = .seconds(1)
        new.cache.directory = "elsewhere"
        new.mounts["b"] = Settings.Mount()
        new.mounts["b"]?.origin = "https://b/"
        let plan = ReloadPlan(from: old, to: new)
        #expect(plan.waiting == ["cache.dir"])
        #expect(plan.changed.contains("cache.max_age") && plan.changed.contains("mounts.b.origin"))
        #expect(plan.settings.cache.directory == old.cache.directory && plan.settings.lifetimes.maxAge == .seconds(1))
        var applied = new
        applied.cache.directory = old.cache.directory
        #expect(plan.settings == applied)
    }

    @Test func aSettingThatWaitsIsReportedAgain() {
        var new = Settings()
        new.cache.directory = "elsewhere"
        let first = ReloadPlan(from: Settings(), to: new)
        #expect(ReloadPlan(from: first.settings, to: new).waiting == ["cache.dir"])
    }
}
