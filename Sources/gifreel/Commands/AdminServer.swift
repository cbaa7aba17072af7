internal import ArgumentParser
internal import Foundation
internal import HTTPClient
internal import Prewarm
internal import SystemIO

/// The arguments of the commands that drive a running server.
enum AdminServer {
    static let missingToken = "The server needs its admin token; set GIFREEL_ADMIN_TOKEN or give --token."

    static func validate(_ server: String) throws {
        if ServerClient.socketPath(server) != nil { return }
        guard isURL(server) else {
            throw ValidationError(
                "--server is “\(server)”; it must be an http or https URL, such as http://127.0.0.1:8080, or unix: and the path of a socket."
            )
        }
    }

    /// Checks the address of a server that pages name too, which must be a URL.
    static func validatePublic(_ server: String) throws {
        guard isURL(server) else {
            throw ValidationError("--server is “\(server)”; it must be an http or https URL, such as https://gifs.example.com.")
        }
    }

    private struct Refusal: Decodable {
        var detail: String
        var code: String
    }

    /// The sentence for an answer that refuses a request.
    static func refusal(_ answer: ClientResponse) -> String {
        let refusal = try? JSONDecoder().decode(Refusal.self, from: Data(answer.body))
        let hint = answer.status == 404 ? " (Is admin.token set on the server?)" : ""
        return "\(refusal.map { "\($0.code): \($0.detail)" } ?? "status \(answer.status)")\(hint)"
    }

    /// Prints a sentence on standard error, and returns the exit code for it.
    static func failure(_ sentence: String) -> ExitCode {
        StandardError.write("gifreel: \(sentence)\n")
        return .failure
    }

    private static func isURL(_ server: String) -> Bool { server.hasPrefix("http://") || server.hasPrefix("https://") }

    /// The token of the argument or else of the environment; nil if both are missing or empty.
    static func token(_ argument: String?) -> String? {
        let token = argument ?? ProcessInfo.processInfo.environment["GIFREEL_ADMIN_TOKEN"]
        return token.flatMap { $0.isEmpty ? nil : $0 }
    }
}
