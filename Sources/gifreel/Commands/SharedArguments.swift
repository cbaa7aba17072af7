internal import ArgumentParser
internal import Foundation
internal import HTTPClient
internal import Prewarm
internal import Settings
internal import SystemIO
internal import Web

/// The arguments of commands that control a running server, and the requests made with them.
struct AdminServer: ParsableArguments {
    static let address = "http://127.0.0.1:8080"

    @Option(help: "The URL of the server, or unix: and the path of its socket.")
    var server = Self.address

    @Option(help: "The admin token. Prefer GIFREEL_ADMIN_TOKEN: other users of the machine can see command lines.")
    var token: String?

    func validate() throws {
        try Self.validate(server)
    }

    /// Requests a document, with the admin token.
    ///
    /// - Parameter timeout: In seconds.
    /// - Throws: ``SettingsError`` if there is no token, or the server cannot be reached or refuses.
    func document(_ target: String, timeout: Int = 60) throws(SettingsError) -> Data {
        try Self.document(target, of: ServerClient(server: server, token: try Self.token(token), timeout: timeout), at: server)
    }

    /// Returns the path of one of the server's own URLs, which it knows only by `server.public_url`; other URLs unchanged.
    func subject(_ url: String) -> String {
        let root = server.hasSuffix("/") ? String(server.dropLast()) : server
        return url.hasPrefix(root + "/") ? String(url.dropFirst(root.count)) : url
    }

    static func validate(_ server: String) throws {
        if ServerClient.socketPath(server) != nil { return }
        try validateURL("--server", server, example: "http://127.0.0.1:8080, or unix: and the path of a socket")
    }

    /// Checks the value of an option that must be a URL.
    static func validateURL(_ option: String, _ text: String, example: String) throws {
        guard ["http://", "https://"].contains(where: text.hasPrefix) else {
            throw ValidationError("\(option) is “\(text)”; it must be an http or https URL, such as \(example).")
        }
    }

    /// Checks the address of a page.
    static func validateBase(_ base: String) throws {
        try validateURL("--base", base, example: "https://example.com/gifs/")
    }

    private struct Refusal: Decodable {
        var detail: String
        var code: String
    }

    /// The sentence for an answer that refuses a request.
    static func refusal(_ answer: ClientResponse) -> String {
        let refusal = try? JSONDecoder().decode(Refusal.self, from: Data(answer.body))
        let hint = answer.status == 404 ? " (Is admin.token set on the server?)" : ""
        return "\(refusal.map { "\($0.code): \($0.detail)" } ?? answer.statusText)\(hint)"
    }

    /// Returns the token from the argument, or from the environment, which may name a file that contains it.
    ///
    /// - Throws: ``SettingsError`` if both are missing or empty.
    static func token(_ argument: String?) throws(SettingsError) -> String {
        var token = argument
        if token == nil {
            let variables = ProcessInfo.processInfo.environment.filter { $0.key.hasPrefix("GIFREEL_ADMIN_TOKEN") }
            token = try SettingsReader.read(file: nil, environment: variables, flags: []).settings.admin.token
        }
        guard let token, !token.isEmpty else {
            throw SettingsError("The server needs its admin token; set GIFREEL_ADMIN_TOKEN or give --token.")
        }
        return token
    }

    /// Sends a request whose answer is a document.
    ///
    /// - Throws: ``SettingsError`` if the server cannot be reached or refuses.
    static func document(_ target: String, of client: ServerClient, at server: String) throws(SettingsError) -> Data {
        let answer = try translating(try client.send("GET", target)) { (error: HTTPError) in
            SettingsError("\(server): \(error)")
        }
        guard answer.status == 200 else { throw SettingsError(refusal(answer)) }
        return Data(answer.body)
    }

    /// - Throws: ``SettingsError`` if the document has another form.
    static func decoded<Document: Decodable>(_ type: Document.Type, _ body: Data) throws(SettingsError) -> Document {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        guard let document = try? decoder.decode(type, from: body) else {
            throw SettingsError("The answer does not come from a Gifreel server of this version.")
        }
        return document
    }
}

/// The arguments of the commands that read the settings as the server does.
struct SettingsArguments: ParsableArguments {
    @Option(
        name: .customLong("config"), help: "A YAML file with settings.", completion: .file(extensions: ["yaml", "yml"]))
    var file: String?

    @Option(name: .customLong("set"), help: "Sets a setting, such as --set server.port=0. Can be repeated.")
    var values: [String] = []

    /// Reads flags, environment and file. Blocks while files are read.
    func read() throws(SettingsError) -> SettingsReader.Result {
        try SettingsReader.read(file: file, environment: ProcessInfo.processInfo.environment, flags: values)
    }
}

extension SettingsError {
    /// The problem of the request that the arguments describe.
    init(_ problem: Problem) { self.init(problem.detail) }
    static func noWorker(_ error: SystemError) -> SettingsError {
        SettingsError("The worker process cannot be started: \(error).")
    }
}
