internal import ArgumentParser
internal import Foundation
internal import HTTP
internal import HTTPClient
internal import Prewarm
internal import Settings
internal import SystemIO

/// `gifreel health`: asks the server on this machine whether it is ready, for health checks of containers.
struct HealthCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "health",
        abstract: "Asks the server on this machine whether it is ready.",
        discussion: """
            The address is that of the settings, which are read as gifreel serve reads them. Exits with 0 if the server is ready, \
            and otherwise with 1 and a sentence on standard error.
            """)

    @OptionGroup var settings: SettingsArguments

    @Option(help: "The URL of the server, or unix: and the path of its socket, in place of the address in the settings.")
    var server: String?

    @Flag(help: "Asks whether the process answers (/healthz), which it also does while it starts or drains.")
    var live = false

    @Option(help: "The limit for the answer, in seconds, 1 to 60.")
    var timeout = 2

    func validate() throws {
        guard (1...60).contains(timeout) else { throw ValidationError("--timeout must be 1 to 60.") }
        if let server { try AdminServer.validate(server) }
    }

    /// Exits with 1 unless the server answers 200 in time.
    func run() throws {
        let target = live ? "/healthz" : "/readyz"
        let address = try server ?? Self.address(try readSettings())
        let client = ServerClient(server: address, token: nil, timeout: timeout, usesProxies: false)
        let answer = try translating(try client.send("GET", target)) { (error: HTTPError) in
            SettingsError("\(address): \(error)")
        }
        if answer.status != 200 { throw SettingsError("\(address)\(target) answers \(answer.status).") }
    }

    /// The settings, without the file if it is invalid: a server that has read it earlier keeps its settings.
    private func readSettings() throws(SettingsError) -> Settings {
        do throws(SettingsError) {
            return try settings.read().settings
        } catch {
            guard settings.file != nil else { throw error }
            StandardError.writeLine("gifreel: \(error)")
            var others = settings
            others.file = nil
            return try others.read().settings
        }
    }

    /// The address at which the server of a configuration is reached from the same machine.
    ///
    /// - Throws: ``SettingsError`` if the server selects a free port and writes it to no file.
    private static func address(_ settings: Settings) throws(SettingsError) -> String {
        if let path = settings.http.unixPath { return "unix:\(path)" }
        return "http://\(host(settings.http.host ?? "")):\(try port(settings))"
    }

    /// The address of a connection to a server that listens on `host`: a wildcard is reached through loopback.
    private static func host(_ host: String) -> String {
        switch host {
        // A container without IPv6 has no ::1, and :: includes IPv4.
        case "", "0.0.0.0", "*", "::", "[::]": "127.0.0.1"
        default: host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
        }
    }

    private static func port(_ settings: Settings) throws(SettingsError) -> Int {
        if settings.http.port != 0 { return settings.http.port }
        guard let path = settings.server.portFile else {
            throw SettingsError("server.port is 0; set server.port_file, so that the port can be found.")
        }
        let text = (try? Files.read(path)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        guard let port = Int(text.trimmingCharacters(in: .whitespacesAndNewlines)), (1...65535).contains(port) else {
            throw SettingsError("\(path) holds no port: the server has not started.")
        }
        return port
    }
}
