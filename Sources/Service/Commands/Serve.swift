internal import CLinux
internal import Foundation
internal import Glibc
internal import HTTP
internal import Logging
internal import Sandbox
internal import SystemIO

/// `gifreel serve`: from the settings to the exit code.
package struct Serve {
    package var file: String?
    package var flags: [String]
    /// Only says what is in force.
    package var checksOnly: Bool

    package init(file: String?, flags: [String], checksOnly: Bool) {
        self.file = file
        self.flags = flags
        self.checksOnly = checksOnly
    }

    /// Serves until SIGTERM or SIGINT. Blocks the calling thread.
    ///
    /// - Returns: The exit code: 0 after an orderly end, 1 when the service could not start.
    package func run() -> Int32 {
        if checksOnly { return Blocking.wait { await check() } }
        let zygote: Zygote
        do throws(SystemError) {
            zygote = try Zygote.spawn()
        } catch {
            return Self.complain("The worker process cannot be started: \(error).")
        }
        // Connections and the cache's open files together come to more than the usual soft limit.
        clinux_raise_descriptor_limit()
        // Threads made from here on leave these signals to this one.
        let signals = BlockedSignals([SIGTERM, SIGINT])
        signal(SIGPIPE, SIG_IGN)
        let started = Blocking.wait { await start(zygote) }
        guard case .success(let service) = started else {
            if case .failure(let error) = started { return Self.complain(error.description) }
            return 1
        }
        signals.waitForOne()
        // A second signal is impatience. Nobody joins the thread: it ends with the process.
        _ = SystemThread.start(name: "gifreel-signals") {
            signals.waitForOne()
            _exit(1)
        }
        Blocking.wait { await service.stop() }
        zygote.stop()
        return 0
    }

    private func start(_ zygote: Zygote) async -> Result<GifreelService, ConfigurationError> {
        do {
            let configuration = try await configuration()
            let logger = LogOutput.makeLogger(level: configuration.logLevel, format: configuration.logFormat)
            if let warning = try ConfinementCheck.check(zygote.confinement(), isRequired: configuration.requiresSandbox) {
                logger.warning("\(warning)")
            }
            let logsRequests = configuration.logLevel <= .info
            let service = try GifreelService(
                configuration: configuration, zygote: zygote, logger: logger,
                observer: logsRequests ? Self.accessLog(configuration.logFormat) : nil)
            try service.start()
            return .success(service)
        } catch {
            return .failure(ConfigurationError("\(error)"))
        }
    }

    private func configuration() async throws(ConfigurationError) -> ServiceConfiguration {
        try ServiceConfiguration(try await settings())
    }

    private func settings() async throws(ConfigurationError) -> SettingsReader {
        try await SettingsReader(file: file, environment: ProcessInfo.processInfo.environment, flags: flags)
    }

    /// Prints each setting in force, with its secrets masked.
    private func check() async -> Int32 {
        do throws(ConfigurationError) {
            let settings = try await settings()
            _ = try ServiceConfiguration(settings)
            for line in try settings.lines() { print(line) }
            return 0
        } catch {
            return Self.complain(error.description)
        }
    }

    /// A line a request on standard output; nil where that is closed.
    private static func accessLog(_ format: ServiceConfiguration.LogFormat) -> HTTPAccessLogWriter? {
        let output = dup(1)
        guard output >= 0 else { return nil }
        let lines: HTTPAccessLogWriter.Format =
            switch format {
            case .text: .text
            case .json: .json
            }
        return HTTPAccessLogWriter(SharedDescriptor(OwnedDescriptor(taking: output)), format: lines)
    }

    private static func complain(_ sentence: String) -> Int32 {
        FileHandle.standardError.write(Data("gifreel: \(sentence)\n".utf8))
        return 1
    }
}
