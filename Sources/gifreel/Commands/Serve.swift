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
        return 0
    }

    /// A service with the settings it began with, and the form of its log.
    private struct Running: Sendable {
        var service: GifreelService
        /// As they were read last.
        var values: [String: String]
        /// What is in force of those that only a restart changes.
        var format: ServiceConfiguration.LogFormat
        var logger: Logger
    }

    private func start(_ zygote: Zygote) async -> Result<Running, ConfigurationError> {
        do {
            let settings = try await settings()
            let configuration = try ServiceConfiguration(settings)
            let logger = LogOutput.makeLogger(level: configuration.logLevel, format: configuration.logFormat)
            if let warning = try ConfinementCheck.check(zygote.confinement(), isRequired: configuration.requiresSandbox) {
                logger.warning("\(warning)")
            }
            let service = try GifreelService(
                configuration: configuration, zygote: zygote, logger: logger,
                accessLog: Self.accessLog(configuration.logFormat))
            try service.start()
            return .success(
                Running(
                    service: service, values: try settings.values(), format: configuration.logFormat, logger: logger))
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
            next.logger = LogOutput.makeLogger(level: configuration.logLevel, format: running.format)
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
