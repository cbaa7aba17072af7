internal import CLinux
internal import Foundation
internal import Glibc
internal import HTTP
internal import Logging
internal import Logs
internal import Sandbox
internal import SystemIO
internal import Web

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
        let signals = BlockedSignals([SIGTERM, SIGINT, SIGHUP])
        signal(SIGPIPE, SIG_IGN)
        let started = Blocking.wait { await start(zygote) }
        guard case .success(var running) = started else {
            if case .failure(let error) = started { return Self.complain(error.description) }
            return 1
        }
        let manager = ServiceManager()
        manager.ready()
        while signals.waitForOne() == SIGHUP {
            manager.reloading()
            running = Blocking.wait { [running] in await reload(running) }
            manager.ready()
        }
        manager.stopping()
        let service = running.service
        // A second signal is impatience. Nobody joins the thread: it ends with the process.
        _ = SystemThread.start(name: "gifreel-signals") {
            while signals.waitForOne() == SIGHUP {}
            _exit(1)
        }
        Blocking.wait { await service.stop() }
        zygote.stop()
        running.accessLog?.close(within: Self.logFlushLimit)
        running.log.close(within: Self.logFlushLimit)
        return 0
    }

    /// The time that a log has at the end to write its last lines.
    private static let logFlushLimit = Duration.seconds(1)

    /// A service with the settings it began with, and the form of its log.
    private struct Running: Sendable {
        var service: GifreelService
        /// As they were read last.
        var values: [String: String]
        /// Its format is that of the start: only a restart changes it.
        var log: LogOutput
        var accessLog: HTTPAccessLogWriter?
        var logger: Logger
    }

    private func start(_ zygote: Zygote) async -> Result<Running, ConfigurationError> {
        do {
            let settings = try await settings()
            let configuration = try ServiceConfiguration(settings)
            let log = LogOutput(format: configuration.logFormat == .json ? .json : .text)
            let logger = log.makeLogger(level: configuration.logLevel, metadataProvider: .request)
            let accessLog = Self.accessLog(configuration)
            if let warning = try ConfinementCheck.check(zygote.confinement(), isRequired: configuration.requiresSandbox) {
                logger.warning("\(warning)")
            }
            let service = try GifreelService(
                configuration: configuration, zygote: zygote, logger: logger,
                accessLog: accessLog,
                droppedLogLines: {
                    [(log: "service", lines: log.droppedLines), (log: "access", lines: accessLog?.droppedLines ?? 0)]
                })
            try service.start()
            return .success(
                Running(
                    service: service, values: try settings.values(), log: log, accessLog: accessLog, logger: logger))
        } catch {
            return .failure(ConfigurationError("\(error)"))
        }
    }

    /// Reads the settings again and brings into force what can be. Where they are wrong, all stays as it is.
    private func reload(_ running: Running) async -> Running {
        var next = running
        do {
            let settings = try await settings()
            let configuration = try ServiceConfiguration(settings)
            next.logger = running.log.makeLogger(level: configuration.logLevel, metadataProvider: .request)
            next.values = try settings.values()
            try running.service.reload(configuration, logger: next.logger)
            let plan = ReloadPlan(from: running.values, to: next.values)
            next.logger.notice("settings read again", metadata: ["changed": "\(plan.changed.joined(separator: ", "))"])
            if !plan.waiting.isEmpty {
                // Said again at every reading until it is done.
                for name in plan.waiting { next.values[name] = running.values[name] }
                next.logger.warning("a restart is needed", metadata: ["for": "\(plan.waiting.joined(separator: ", "))"])
            }
            return next
        } catch {
            running.logger.error("settings not read again", metadata: ["cause": "\(error)"])
            return running
        }
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

    /// The access log on standard output; nil where that is closed.
    private static func accessLog(_ configuration: ServiceConfiguration) -> HTTPAccessLogWriter? {
        try? HTTPAccessLogWriter(
            duplicating: STDOUT_FILENO, format: configuration.logFormat == .json ? .json : .text,
            includesClientFields: configuration.http.recordsClientFields)
    }

    private static func complain(_ sentence: String) -> Int32 {
        StandardError.write("gifreel: \(sentence)\n")
        return 1
    }
}
