internal import ArgumentParser
internal import Fetch
internal import Foundation
internal import HTTPClient
internal import Prewarm
internal import Settings
internal import SystemIO
internal import Web

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

    @Option(help: "Removes the renditions of all sources whose URL begins with this. Can be repeated.")
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
        scopes += prefix.map { .cache("prefix", $0, name: "\($0)…") }
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
