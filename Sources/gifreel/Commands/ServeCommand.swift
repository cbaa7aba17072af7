internal import ArgumentParser
internal import CLinux
internal import Fleet
internal import Foundation
internal import Glibc
internal import HTTP
internal import HTTPClient
internal import Logging
internal import Sandbox
internal import Settings
internal import Store
internal import Synchronization
internal import SystemIO
internal import Telemetry
internal import Web

/// `gifreel serve`: runs the server until a signal ends it.
struct ServeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Runs the HTTP server until SIGTERM or SIGINT.",
        discussion:
            "gifreel settings prints every setting. Each is also an environment variable, such as GIFREEL_SERVER_PORT; see gifreel.yaml(5)."
    )

    @OptionGroup var settings: SettingsArguments

    @Flag(name: .customLong("check"), help: "Checks the settings, prints each value and where it comes from, and exits.")
    var checks = false

    @Flag(help: "With --check: also tries Redis, the shared store and the servers of purge hooks.")
    var connect = false

    @Flag(help: "With --check: prints only the settings whose values are not the defaults.")
    var changed = false

    func validate() throws {
        if connect && !checks { throw ValidationError("--connect needs --check.") }
        if changed && !checks { throw ValidationError("--changed needs --check.") }
    }

    /// Serves until SIGTERM or SIGINT. Blocks the calling thread. Exits with 1 if the service cannot start.
    func run() throws {
        if checks { return try checkSettings() }
        let zygote = try translating(try Zygote.spawn(), to: SettingsError.noWorker)
        // Connections and open files of the cache exceed the usual soft limit.
        clinux_raise_descriptor_limit()
        // Threads inherit the mask, so that only the thread that waits for the signals receives them.
        let signals = BlockedSignals([SIGTERM, SIGINT, SIGHUP])
        signal(SIGPIPE, SIG_IGN)
        let result = Mutex(Result<Void, any Error>.success(()))
        // On the main thread, Swift gives new tasks a priority above the default. An ordinary user may not have it, which libdispatch
        // would log at each start.
        let thread = SystemThread.start(name: "gifreel-serve") {
            let served = Result { try serve(zygote, signals) }
            result.withLock { $0 = served }
        }
        guard let thread else { return try serve(zygote, signals) }
        thread.join()
        try result.withLock { $0 }.get()
    }

    /// Starts the service, reloads it at SIGHUP and stops it at another signal.
    private func serve(_ zygote: Zygote, _ signals: BlockedSignals) throws {
        var running = try start(zygote)
        let manager = ServiceManager()
        manager.ready()
        let watchdog = manager.startWatchdog { [service = running.service] in service.ping($0) }
        defer { watchdog?.cancel() }
        while signals.waitForOne() == SIGHUP {
            manager.reloading()
            running = reload(running)
            manager.ready()
        }
        manager.stopping()
        let service = running.service
        // A second signal ends the process at once. The thread is not joined.
        _ = SystemThread.start(name: "gifreel-signals") {
            while signals.waitForOne() == SIGHUP {}
            _exit(1)
        }
        Blocking.wait { await service.stop() }
        zygote.stop()
        running.accessLog?.close()
        running.log.close()
    }

    /// The service, and the values that a reload needs.
    private struct Running {
        var service: GifreelService
        var settings: Settings
        /// The overrides that the log has named.
        var overrides: [SettingsReader.Override]
        var fileHasSettings: Bool
        /// Only a restart changes its format.
        var log: LogOutput
        var accessLog: HTTPAccessLogWriter?
        var logger: Logger
    }

    private func start(_ zygote: Zygote) throws -> Running {
        let read = try settings.read()
        var configuration = try ServiceConfiguration(read.settings)
        let descriptorWarning = configuration.fit(descriptorLimit: DescriptorLimit.current)
        let log = LogOutput(format: configuration.settings.log.format, level: configuration.logLevel)
        let logger = log.makeLogger(metadataProvider: .request)
        if !read.ignoredVariables.isEmpty {
            logger.notice(
                "ignored environment variables that Kubernetes sets for a service named gifreel",
                metadata: ["names": "\(read.ignoredVariables.joined(separator: ", "))"])
        }
        Self.log(read.overrides, to: logger)
        if let descriptorWarning { logger.warning("\(descriptorWarning)") }
        let accessLog = Self.accessLog(configuration)
        if let warning = try ConfinementCheck.check(zygote.confinement(), isRequired: configuration.settings.requiresSandbox) {
            logger.warning("\(warning)")
        }
        let service = try GifreelService(
            configuration: configuration, zygote: zygote, logger: logger,
            accessLog: accessLog,
            droppedLogLines: {
                [(log: "service", lines: log.droppedLines), (log: "access", lines: accessLog?.droppedLines ?? 0)]
            })
        try service.start()
        return Running(
            service: service, settings: read.settings, overrides: read.overrides, fileHasSettings: read.fileHasSettings,
            log: log, accessLog: accessLog, logger: logger)
    }

    /// Logs the variables that override the settings file: changing these settings in the file has no effect.
    private static func log(_ overrides: [SettingsReader.Override], to logger: Logger) {
        for each in overrides {
            logger.notice(
                "an environment variable overrides the settings file",
                metadata: ["setting": "\(each.setting)", "variable": "\(each.variable)", "overridden": "\(each.overridden)"])
        }
    }

    /// Reads the settings again and applies those that can change. If they are wrong, nothing changes.
    private func reload(_ running: Running) -> Running {
        do {
            // The pipe is empty now, so reading it would reset every setting to its default.
            if let file = settings.file, Files.isPipe(file) {
                throw SettingsError("The configuration file \(file) is a pipe, which cannot be read again.")
            }
            let read = try settings.read()
            // A program that could not write it has emptied it.
            if let file = settings.file, running.fileHasSettings, !read.fileHasSettings {
                throw SettingsError(
                    "The configuration file \(file) has no settings any more. A restart would use the defaults.")
            }
            let plan = ReloadPlan(from: running.settings, to: read.settings)
            // A setting that keeps its old value may not fit the new value of another one.
            try plan.settings.validate()
            let configuration = try ServiceConfiguration(plan.settings)
            // The restart that a setting waits for must succeed.
            if !plan.waiting.isEmpty { try StartCheck.check(ServiceConfiguration(read.settings)) }
            var next = running
            next.settings = plan.settings
            next.overrides = read.overrides
            next.fileHasSettings = read.fileHasSettings
            try running.service.reload(configuration, logger: next.logger)
            running.log.level = configuration.logLevel
            next.logger.notice("settings read again", metadata: ["changed": "\(plan.changed.joined(separator: ", "))"])
            Self.log(read.overrides.filter { !running.overrides.contains($0) }, to: next.logger)
            if !plan.waiting.isEmpty {
                next.logger.warning("a restart is needed", metadata: ["settings": "\(plan.waiting.joined(separator: ", "))"])
            }
            return next
        } catch {
            running.logger.error("settings not read again", metadata: ["cause": "\(error)"])
            return running
        }
    }

    /// Checks the settings and prints each value and where it comes from. Secrets are masked.
    private func checkSettings() throws {
        let read = try settings.read()
        let configuration = try ServiceConfiguration(read.settings)
        try StartCheck.check(configuration)
        if !read.ignoredVariables.isEmpty {
            StandardError.writeLine("gifreel: ignored, set by Kubernetes: \(read.ignoredVariables.joined(separator: ", "))")
        }
        for each in read.overrides {
            StandardError.writeLine("gifreel: \(each.variable) overrides \(each.setting) of \(each.overridden)")
        }
        for warning in configuration.secretWarnings { StandardError.writeLine("gifreel: warning: \(warning)") }
        for package in LinkedPackages.program.outdated() { StandardError.writeLine("gifreel: \(package)") }
        for line in changed ? read.changedLines : read.lines { print(line) }
        if connect { try connectParts(configuration) }
    }

    /// Tries the parts that the settings name, and prints their states.
    private func connectParts(_ configuration: ServiceConfiguration) throws {
        var hasFailed = false
        for (name, result) in ConnectionCheck.parts(of: configuration) {
            switch result {
            case .success(let text): print("# \(name): \(text)")
            case .failure(let error):
                hasFailed = true
                StandardError.writeLine("gifreel: \(name): \(error)")
            }
        }
        if hasFailed { throw ExitCode.failure }
    }

    /// The access log on standard output; nil if that is closed.
    private static func accessLog(_ configuration: ServiceConfiguration) -> HTTPAccessLogWriter? {
        try? HTTPAccessLogWriter(
            duplicating: STDOUT_FILENO, format: configuration.settings.log.format,
            includesClientFields: configuration.http.recordsClientFields)
    }
}

/// Tries the other servers that the settings name, as the server would use them.
enum ConnectionCheck {
    /// The setting that names a server, and the server's state.
    typealias Part = (name: String, result: Result<String, SettingsError>)

    /// Blocks for at most a few seconds per part.
    static func parts(of configuration: ServiceConfiguration) -> [Part] {
        var parts: [Part] = []
        if let cluster = configuration.cluster {
            parts.append(("cluster.redis", Result { () throws(SettingsError) in try redis(cluster) }))
        }
        if let store = configuration.store {
            parts.append(("store.s3", Result { () throws(SettingsError) in try bucket(store) }))
        }
        for hook in configuration.purgeHooks {
            parts.append(("purge.hooks.\(hook.name)", Result { () throws(SettingsError) in try server(of: hook) }))
        }
        return parts
    }

    private static func redis(_ configuration: ClusterConfiguration) throws(SettingsError) -> String {
        let server = try translating(try Cluster.check(configuration)) { (error: RedisError) in
            SettingsError("\(configuration.address): \(error)")
        }
        return "\(server) at \(configuration.address), and the user has all rights"
    }

    private static func bucket(_ configuration: SharedStoreConfiguration) throws(SettingsError) -> String {
        // Without a ledger: the outbox belongs to the server.
        let store = try translating(try SharedStore(configuration) { _ in }) { (error: any Error) in SettingsError("\(error)") }
        defer { store.close() }
        let name = configuration.bucket.name
        try Blocking.wait { () async throws(SettingsError) in
            try await translating(awaiting: try await store.check()) { (error: StoreError) in SettingsError("\(name): \(error)")
            }
        }
        return "\(name) takes, lists, returns and deletes an object"
    }

    /// Whether the server of a hook answers anything. A HEAD purges nothing.
    private static func server(of hook: PurgeHook) throws(SettingsError) -> String {
        var request = hook.probe
        request.userAgent = "gifreel/\(Gifreel.version)"
        request.timeout = .seconds(5)
        _ = try translating(try HTTPClient.perform(request)) { (error: HTTPError) in SettingsError("\(error)") }
        return "the server answers"
    }
}
