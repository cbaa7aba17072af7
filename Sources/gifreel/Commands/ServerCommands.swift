internal import ArgumentParser
internal import Foundation
internal import HTTPClient
internal import Prewarm
internal import Settings
internal import SystemIO
internal import Web

/// `gifreel cache`: describes the cache of a running server, or its stored renditions of sources.
struct CacheCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache",
        abstract: "Shows the cache of a running server.",
        usage: "gifreel cache\ngifreel cache URL…",
        discussion: "Without URLs, prints the numbers of the cache. With URLs, prints a line for each stored rendition.")

    @Argument(help: "URLs of sources.")
    var urls: [String] = []

    @Flag(help: "Prints the server's JSON.")
    var json = false

    @OptionGroup var admin: AdminServer

    /// Exits with 1 if the server cannot be reached or refuses.
    func run() throws {
        let targets = urls.isEmpty ? ["/cache"] : urls.map { "/cache?url=\(PercentEncoding.encode(admin.subject($0)))" }
        for target in targets {
            let body = try admin.document(target)
            if json {
                print(String(decoding: body, as: UTF8.self))
            } else if urls.isEmpty {
                try Self.printNumbers(body)
            } else {
                try Self.printRenditions(body)
            }
        }
    }

    private static func printRenditions(_ body: Data) throws {
        let listed = try AdminServer.decoded(CacheListing.self, body)
        print("\(listed.url): \(listed.renditions.isEmpty ? "nothing stored" : "\(listed.renditions.count) stored")")
        for rendition in listed.renditions { print("  " + rendition.line) }
    }

    private static func printNumbers(_ body: Data) throws {
        let numbers = try AdminServer.decoded(CacheSummary.self, body)
        let used = numbers.limitBytes > 0 ? Double(numbers.diskBytes) * 100 / Double(numbers.limitBytes) : 0
        print("renditions   \(numbers.objects), \(numbers.bytes) bytes, under \(numbers.aliases) addresses")
        let free = numbers.freeBytes.map { ", \($0) bytes free on the disk" } ?? ""
        print("disk         \(numbers.diskBytes) of \(numbers.limitBytes) bytes (\(Int(used)) %)\(free)")
        if let reason = numbers.notStoring { print("storing      nothing: \(reason)") }
        print("lookups      \(numbers.hits) hits, \(numbers.misses) misses since the start")
        print("evictions    \(numbers.evictions)")
        print("in progress  \(numbers.inProgress)")
        if let store = numbers.store {
            let state = store.available ? "available" : "unavailable"
            print("store        \(state); waiting writes: \(store.queued), \(store.queuedBytes) bytes")
        }
        if let cluster = numbers.cluster {
            let state = cluster.shared ? "shares work" : "works alone"
            print("cluster      \(cluster.node) \(state); nodes: \(cluster.nodes), waiting purges: \(cluster.pendingPurges)")
            for member in cluster.members { print("  \(member.node): \(member.lag) s behind in purges") }
        }
    }
}

/// `gifreel explain`: says why a running server converts a source or does not.
struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Explains why a running server converts a source or does not.",
        usage: "gifreel explain URL…\ngifreel explain /mp4,width=480/https://example.com/a.gif\ngifreel explain --fetch URL…",
        discussion: """
            Prints which rule allows or refuses the source, what is stored of it, which failures are remembered, and what a \
            request gets now. Without a format, that is a request for the MP4.

            Exit status: 0 if a request gets a rendition, 1 if it does not, or if the server cannot be reached or refuses.
            """)

    @Argument(help: "URLs of sources, or addresses of renditions on the server.")
    var urls: [String]

    @Flag(help: "Fetches and converts the source now, without storing anything.")
    var fetch = false

    @Flag(help: "Prints the server's JSON.")
    var json = false

    @OptionGroup var admin: AdminServer

    func run() throws {
        var isAnswered = true
        for url in urls {
            let target = "/explain?url=\(PercentEncoding.encode(admin.subject(url)))\(fetch ? "&fetch=true" : "")"
            let body = try admin.document(target, timeout: fetch ? 600 : 60)
            let explanation = try AdminServer.decoded(Explanation.self, body)
            if json { print(String(decoding: body, as: UTF8.self)) } else { Self.show(explanation) }
            let isRefused = [.refused, .failed, .overloaded].contains(explanation.answer)
            if explanation.trial.map({ $0.failure != nil }) ?? isRefused { isAnswered = false }
        }
        if !isAnswered { throw ExitCode.failure }
    }

    private static func show(_ explanation: Explanation) {
        print("\(explanation.url) (\(explanation.rendition))")
        var allowed = explanation.rule.map { "by \($0)" } ?? "by no rule"
        if explanation.mounts.count > 1 { allowed += " (of the mounts \(explanation.mounts.joined(separator: ", ")))" }
        if explanation.lacksSignature { allowed += ", with a signature" }
        line("allowed", allowed)
        if explanation.renditions.isEmpty { line("stored", "nothing") }
        for rendition in explanation.renditions { line("stored", rendition.line) }
        for failure in explanation.failures {
            let subject = failure.ofSource ? "the source" : failure.rendition ?? "another rendition"
            line(
                "failed",
                "\(subject), \(failure.age) s ago, tried again in \(failure.remaining) s: \(text(failure.failure))")
        }
        if let reason = explanation.notStoring { line("storing", "nothing: \(reason)") }
        line("now", explanation.summary)
        guard let trial = explanation.trial else { return }
        if let failure = trial.failure { return line("tried", text(failure)) }
        let source = "\(trial.sourceType ?? "source") of \(trial.sourceBytes ?? 0) bytes"
        let size = trial.width.flatMap { width in trial.height.map { ", \(width)×\($0)" } } ?? ""
        let result = trial.bytes.map { " to \($0) bytes, \(trial.frames ?? 0) frames\(size)" } ?? ""
        let times = trial.times.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        line("tried", "\(source)\(result) (\(times))")
    }

    private static func line(_ name: String, _ text: String) {
        print("  " + name.padding(toLength: 9, withPad: " ", startingAt: 0) + text)
    }

    private static func text(_ failure: Explanation.Failure) -> String {
        "\(failure.status) \(failure.code): \(failure.detail)" + (failure.cause.map { " (\($0))" } ?? "")
    }
}

extension CacheListing.Rendition {
    /// The rendition in the tables of commands.
    var line: String {
        let options = options.sorted { $0.key < $1.key }.map { ",\($0.key)=\($0.value)" }.joined()
        let left = state == "fresh" ? "fresh for \(freshFor) s" : state
        return "\(format)\(options): \(bytes) bytes, \(age) s old, \(left), \(hits) hits, \(object)"
    }
}

/// `gifreel top`: shows who and what has cost a running server most in the last minutes.
struct TopCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "top",
        abstract: "Shows what has cost a running server most in the last minutes.",
        usage: "gifreel top\ngifreel top --by refused --of client",
        discussion:
            "Counts the processor time of conversions in milliseconds, bytes of responses, misses, and refused requests.")

    @Option(help: "cpu, bytes, misses or refused.")
    var by = UsageBoard.Measure.cpu

    @Option(help: "host (of sources), client, mount or source.")
    var of = UsageBoard.Subject.host

    @Option(help: "The largest number of lines, 1 to 100.")
    var limit = 10

    @Flag(help: "Prints the server's JSON.")
    var json = false

    @OptionGroup var admin: AdminServer

    func validate() throws {
        guard (1...100).contains(limit) else { throw ValidationError("--limit must be 1 to 100.") }
    }

    /// Exits with 1 if the server cannot be reached or refuses.
    func run() throws {
        let body = try admin.document("/top?by=\(by.rawValue)&of=\(of.rawValue)&limit=\(limit)")
        if json { return print(String(decoding: body, as: UTF8.self)) }
        let listing = try AdminServer.decoded(TopListing.self, body)
        let unit =
            switch listing.by {
            case .cpu: "ms of CPU"
            case .bytes: "bytes"
            case .misses: "misses"
            case .refused: "refused requests"
            }
        if listing.entries.isEmpty { print("no \(unit) in the last \(listing.minutes) minutes") }
        for entry in listing.entries {
            let amount = String(entry.amount)
            let padding = String(repeating: " ", count: max(0, 14 - amount.count))
            print("\(padding)\(amount) \(unit)  \(entry.key)" + (entry.error > 0 ? "  (at most \(entry.error) too many)" : ""))
        }
    }
}

extension UsageBoard.Measure: ExpressibleByArgument {}
extension UsageBoard.Subject: ExpressibleByArgument {}

/// `gifreel purge`: removes renditions from the cache of a running server.
struct PurgeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "purge",
        abstract: "Removes renditions from the cache of a running server.",
        usage: """
            gifreel purge URL…
            gifreel purge --prefix https://example.com/2024/
            gifreel purge --host example.com --mount media
            gifreel purge --object /object/….mp4
            gifreel purge --all
            """
    )

    @Argument(help: "URLs of the sources whose renditions are removed, or addresses of renditions on the server.")
    var urls: [String] = []

    @Option(
        help: "Removes the renditions of all sources whose URL, or address on the server, begins with this. Can be repeated.")
    var prefix: [String] = []

    @Option(help: "Removes the renditions of all sources of this host, with every scheme and port. Can be repeated.")
    var host: [String] = []

    @Option(help: "Removes the renditions of all sources below this mount of the server. Can be repeated.")
    var mount: [String] = []

    @Option(help: "Removes an object, given by its path /object/… or its address. Can be repeated.")
    var object: [String] = []

    @Flag(help: "Removes all renditions.")
    var all = false

    @Option(
        help: ArgumentHelp(
            "How long to wait until every node of a cluster has applied the purge, such as 30s.", valueName: "time"))
    var wait: String?

    @Flag(help: "Prints the server's JSON, one object per line.")
    var json = false

    @OptionGroup var admin: AdminServer

    func validate() throws {
        let isEmpty = [urls, prefix, host, mount, object].allSatisfy(\.isEmpty)
        if isEmpty && !all { throw ValidationError("Give URLs, --prefix, --host, --mount, --object or --all.") }
        if all && !isEmpty {
            throw ValidationError("--all cannot be combined with URLs, --prefix, --host, --mount or --object.")
        }
        for name in object where Self.objectPath(name) == nil {
            throw ValidationError("--object is “\(name)”; it must be a path such as /object/….mp4, or an address with one.")
        }
        if host.contains("") { throw ValidationError("--host needs the name of a host.") }
        if prefix.contains("") { throw ValidationError("An empty --prefix matches everything; use --all instead.") }
        if wait != nil {
            guard let waitTime, waitTime <= .seconds(300) else { throw ValidationError("--wait must be from 0s to 300s.") }
        }
    }

    private var waitTime: Duration? { wait.flatMap { Duration(settingText: $0) } }

    /// Purges one scope after the other and prints the result of each. Exits with 1 if the server cannot be reached or refuses,
    /// or if some node has not applied a purge.
    func run() throws {
        let seconds = Int((waitTime ?? .zero).components.seconds)
        let client = ServerClient(server: admin.server, token: try AdminServer.token(admin.token), timeout: 60 + seconds)
        let fields = waitTime == nil ? [] : ["Prefer: wait=\(seconds)"]
        var isComplete = true
        for scope in scopes {
            isComplete = try Self.purge(scope, with: client, at: admin.server, fields: fields, json: json) && isComplete
        }
        if !isComplete { throw ExitCode.failure }
    }

    /// Purges a scope and prints the result.
    ///
    /// - Parameter note: Printed after the name of the scope.
    /// - Returns: Whether every node has applied the purge. If the server refuses, a sentence on standard error says why.
    /// - Throws: ``SettingsError`` if the server cannot be reached.
    static func purge(
        _ scope: Scope, with client: ServerClient, at server: String, fields: [String] = [], json: Bool = false,
        note: String? = nil
    ) throws(SettingsError) -> Bool {
        let answer = try translating(try client.send(scope.method, scope.target, fields: fields)) { (error: HTTPError) in
            SettingsError("\(server): \(error)")
        }
        return report(answer, scope.name + (note.map { " (\($0))" } ?? ""), json: json)
    }

    /// What is purged: its name in messages, and the request.
    struct Scope {
        let name: String
        var method = "DELETE"
        let target: String

        static func url(_ url: String) -> Scope { cache("url", url, name: url) }

        /// A scope of `DELETE /cache`.
        fileprivate static func cache(_ parameter: String, _ value: String, name: String) -> Scope {
            Scope(name: name, target: "/cache?\(parameter)=\(PercentEncoding.encode(value))")
        }
    }

    private var scopes: [Scope] {
        var scopes = urls.map { Scope.url(admin.subject($0)) }
        scopes += prefix.map(admin.subject).map { .cache("prefix", $0, name: "\($0)…") }
        scopes += host.map { .cache("host", $0, name: "all of \($0)") }
        scopes += mount.map { .cache("mount", $0, name: "the mount \($0)") }
        scopes += object.compactMap(Self.objectPath).map { Scope(name: $0, method: "PURGE", target: $0) }
        if all { scopes.append(.cache("all", "true", name: "everything")) }
        return scopes
    }

    /// The path of an object in a path or an address; nil if there is none.
    private static func objectPath(_ text: String) -> String? {
        guard let start = text.range(of: "/object/") else { return nil }
        let name = text[start.upperBound...].utf8
        let isName =
            name.count > 65 && name.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "z") ~= $0 || $0 == UInt8(ascii: ".") }
        return isName ? String(text[start.lowerBound...]) : nil
    }

    private static func report(_ answer: ClientResponse, _ name: String, json: Bool) -> Bool {
        let data = Data(answer.body)
        if (200...202).contains(answer.status), let purged = try? JSONDecoder().decode(Purged.self, from: data) {
            let result = "\(name): \(purged.purged) purged, \(purged.bytes) bytes"
            if json { print(String(decoding: data, as: UTF8.self), terminator: "") }
            guard let nodes = purged.nodes, let acknowledged = purged.acknowledged else {
                if !json { print(result) }
                return true
            }
            let isComplete = purged.complete ?? (acknowledged >= nodes)
            let rest = isComplete ? "" : "; the others apply it later, and --wait 30s waits for them"
            if !json { print("\(result), applied by \(acknowledged) of \(nodes) nodes\(rest)") }
            return isComplete
        }
        StandardError.writeLine("gifreel: \(name): \(AdminServer.refusal(answer))")
        return false
    }
}
