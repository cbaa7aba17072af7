internal import Fetch
internal import Foundation
internal import Prewarm

/// `gifreel purge`: removes renditions from the cache of a running server.
package struct Purge {
    /// The scopes of `DELETE /cache`.
    private enum Scope {
        case url(String)
        case prefix(String)
        case all
    }

    private let scopes: [Scope]
    private let server: String
    private let token: String?

    /// - Parameters:
    ///   - urls: URLs of sources.
    ///   - prefixes: Prefixes of URLs of sources.
    ///   - all: Whether to remove everything.
    ///   - server: The URL of the server.
    package init(urls: [String], prefixes: [String], all: Bool, server: String, token: String?) {
        scopes = urls.map { .url($0) } + prefixes.map { .prefix($0) } + (all ? [.all] : [])
        self.server = server
        self.token = token
    }

    private struct Purged: Decodable {
        var purged: Int64
        var bytes: Int64
    }

    private struct Refusal: Decodable {
        var detail: String
        var code: String
    }

    /// Purges one scope after the other and prints the result of each. Blocks.
    ///
    /// - Returns: The exit code: 0, or 1 if the server could not be reached or refused.
    package func run() -> Int32 {
        let client = ServerClient(server: server, token: token)
        var failed = false
        for scope in scopes {
            do throws(FetchError) {
                let answer = try client.send("DELETE", Self.target(scope))
                failed = !Self.report(answer, scope) || failed
            } catch {
                Self.complain("\(server): \(error)")
                return 1
            }
        }
        return failed ? 1 : 0
    }

    private static func report(_ answer: ServerClient.Answer, _ scope: Scope) -> Bool {
        let data = Data(answer.body.utf8)
        if answer.status == 200, let purged = try? JSONDecoder().decode(Purged.self, from: data) {
            print("\(name(scope)): \(purged.purged) purged, \(purged.bytes) bytes")
            return true
        }
        let refusal = try? JSONDecoder().decode(Refusal.self, from: data)
        let hint = answer.status == 404 ? " (Is admin.token set on the server?)" : ""
        complain("\(name(scope)): \(refusal.map { "\($0.code): \($0.detail)" } ?? "status \(answer.status)")\(hint)")
        return false
    }

    private static func target(_ scope: Scope) -> String {
        switch scope {
        case .url(let url): "/cache?url=\(encoded(url))"
        case .prefix(let prefix): "/cache?prefix=\(encoded(prefix))"
        case .all: "/cache?all=true"
        }
    }

    private static func name(_ scope: Scope) -> String {
        switch scope {
        case .url(let url): url
        case .prefix(let prefix): "\(prefix)…"
        case .all: "everything"
        }
    }

    /// Percent-encodes all but the unreserved characters of RFC 3986 section 2.3.
    private static func encoded(_ text: String) -> String {
        let unreserved = CharacterSet(charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        return text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? text
    }

    private static func complain(_ sentence: String) {
        FileHandle.standardError.write(Data("gifreel: \(sentence)\n".utf8))
    }
}
