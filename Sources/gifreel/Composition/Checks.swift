internal import Fetch
internal import Glibc
internal import HTTP
internal import Sandbox
internal import Settings
internal import Store
internal import SystemIO
internal import Web

/// The production checklist: finds settings and properties of this machine that are unfit for production.
struct Checkup {
    struct Finding: Encodable {
        enum State: String, Encodable {
            case ok, warning, failure
        }

        let check: String
        let state: State
        let text: String
        /// The command to type or the setting to change; nil if nothing has to be done.
        let advice: String?
    }

    private(set) var findings: [Finding] = []

    var hasFailed: Bool { findings.contains { $0.state == .failure } }

    private mutating func pass(_ check: String, _ text: String) {
        findings.append(Finding(check: check, state: .ok, text: text, advice: nil))
    }

    private mutating func warn(_ check: String, _ text: String, _ advice: String) {
        findings.append(Finding(check: check, state: .warning, text: text, advice: advice))
    }

    private mutating func fail(_ check: String, _ text: String, _ advice: String) {
        findings.append(Finding(check: check, state: .failure, text: text, advice: advice))
    }

    // MARK: Settings

    /// Checks access, secrets, and the proxies in front.
    mutating func checkAccess(_ configuration: ServiceConfiguration) {
        let settings = configuration.settings
        let isOpen = settings.fetch.allow.contains(where: \.matchesEveryHost)
        if configuration.web.requiresSignature {
            pass("sources", "requests need a signature")
        } else if isOpen {
            fail(
                "sources", "any client may have any source of the internet converted",
                "set sources.allow: [example.com], or signing.keys: {file: PATH} with a key of: openssl rand -hex 32")
        } else if settings.fetch.allow.isEmpty {
            pass("sources", "sources.allow is empty, so only mounts and uploads have sources")
        } else {
            pass("sources", "sources.allow has \(settings.fetch.allow.map(\.description).joined(separator: ", "))")
        }
        if isOpen, !configuration.web.requiresSignature, configuration.web.rateLimit == nil {
            warn("rates", "no client has a limit of misses", "set rate_limit.misses_per_minute: 60")
        }
        if configuration.secretWarnings.isEmpty { pass("secrets", "none may be guessed") }
        for warning in configuration.secretWarnings { fail("secrets", warning, "use the output of: openssl rand -hex 32") }
        if settings.admin.token == nil {
            warn(
                "admin", "there is no admin token, so nothing can be purged or explained",
                "set GIFREEL_ADMIN_TOKEN to the output of: openssl rand -hex 32")
        }
        checkProxies(settings)
    }

    private mutating func checkProxies(_ settings: Settings) {
        let proxies = settings.http.trustedProxies.patterns.map(\.description)
        let url = settings.server.publicURL
        if url == nil {
            warn(
                "public_url", "links in pages have the host that a client sends",
                "set server.public_url: https://gifs.example.com")
        } else if let url, !url.hasPrefix("https://") {
            warn("public_url", "\(url) is not encrypted", "set server.public_url to an address with https://")
        } else if let url {
            pass("public_url", url)
        }
        if !proxies.isEmpty {
            pass("proxies", "the fields of \(proxies.joined(separator: ", ")) are believed")
        } else if url?.hasPrefix("https://") == true {
            fail(
                "proxies", "server.public_url has https, so a proxy is in front, and all clients count as the proxy",
                "set server.trusted_proxies: [127.0.0.1], or the addresses of the proxy")
        } else {
            warn(
                "proxies", "server.trusted_proxies is empty: behind a proxy, all clients count as one",
                "set server.trusted_proxies: [127.0.0.1], or the addresses of the proxy")
        }
    }

    // MARK: The machine

    mutating func checkDisk(_ configuration: ServiceConfiguration) {
        let path = Files.existing(configuration.cache.directory)
        let space: DiskSpace
        do throws(SystemError) {
            space = try DiskSpace(at: path)
        } catch {
            return fail("disk", "\(path) cannot be examined: \(error)", "set cache.dir to a directory")
        }
        // Only this error holds for every user: rights may be missing for the user of this command alone.
        if access(path, W_OK) != 0, errno == EROFS {
            return fail(
                "disk", "the file system of \(path) is read-only",
                "see why: dmesg | tail; then: mount -o remount,rw MOUNTPOINT; or set cache.dir to another file system")
        }
        let (free, all) = (space.freeBytes, space.allBytes)
        let (limit, reserve) = (configuration.cache.maxBytes, configuration.cache.minFreeBytes)
        // The range of each setting keeps the sum below 2^62.
        let queue = configuration.store == nil ? 0 : Int64(configuration.settings.store.s3.queueBytes.bytes)
        let mebibytes = { (bytes: Int64) in "\(bytes >> 20) MiB" }
        if free < reserve {
            fail(
                "disk", "\(path) has \(mebibytes(free)) free, and cache.min_free_bytes requires \(mebibytes(reserve))",
                "see what fills it: du -xh \(path) | sort -h | tail; or set cache.dir to a larger file system")
        } else if all < limit + reserve + queue {
            let parts =
                queue == 0
                ? "cache.max_bytes and cache.min_free_bytes"
                : "cache.max_bytes, cache.min_free_bytes and store.s3.queue_bytes"
            warn(
                "disk", "the file system of \(path) has \(mebibytes(all)), less than \(parts)",
                "set cache.max_bytes: \(max(1, (all - reserve - queue) >> 20))MiB")
        } else {
            pass("disk", "\(mebibytes(free)) are free for the \(mebibytes(limit)) of cache.max_bytes")
        }
        if let files = space.freeFiles, files < max(1024, space.allFiles / 20) {
            fail(
                "inodes", "the file system of \(path) can take only \(files) more files",
                "create it again with more inodes: mkfs.ext4 -i 8192 DEVICE")
        } else {
            pass("inodes", space.freeFiles.map { "\($0) are free" } ?? "the file system has no limit")
        }
    }

    /// Checks the limit of open files. The caller has raised the soft limit, as the server does.
    mutating func checkDescriptors(_ configuration: ServiceConfiguration) {
        var configuration = configuration
        let limit = DescriptorLimit.current
        if let warning = configuration.fit(descriptorLimit: limit) {
            warn("descriptors", warning, "for this shell: ulimit -n 65536; for the service: LimitNOFILE=65536")
        } else {
            pass("descriptors", "the limit of open files is \(limit)")
        }
    }

    /// Checks what the kernel offers to confine workers.
    mutating func checkKernel(_ confinement: Confinement?, _ configuration: ServiceConfiguration) {
        let advice = "use a kernel of version 5.13 or newer that lists landlock: cat /sys/kernel/security/lsm"
        do throws(SettingsError) {
            guard let warning = try ConfinementCheck.check(confinement, isRequired: configuration.settings.requiresSandbox)
            else {
                return pass("kernel", "it offers seccomp and landlock")
            }
            warn("kernel", warning, advice)
        } catch {
            fail("kernel", error.description, advice)
        }
    }

    /// Checks that a time service runs: signatures expire by the clock.
    ///
    /// - Parameter marks: Files that time services create. systemd-timesyncd creates the first once it is synchronised.
    mutating func checkClock(
        marks: [String] = [
            "/run/systemd/timesync/synchronized", "/run/chrony/chronyd.pid", "/run/ntpd.pid", "/run/openntpd.pid",
        ]
    ) {
        if marks.contains(where: Files.exists) { return pass("clock", "a time service runs") }
        warn(
            "clock", "no time service was found, and signatures expire by the clock (in a container, the host has it)",
            "apt-get install systemd-timesyncd && timedatectl set-ntp true")
    }

    /// Checks the libraries that are part of the program.
    mutating func checkLibraries(_ outdated: [OutdatedPackage]) {
        for package in outdated { warn("libraries", "\(package)", "apt-get update && apt-get install gifreel") }
        if outdated.isEmpty { pass("libraries", "none that is linked is older than the machine's") }
    }

    // MARK: Files of other programs

    /// A line of the shipped file, and the consequence of its absence.
    struct RequiredLine {
        /// The beginning of the line, with single spaces.
        let text: String
        /// The rest of the shipped line.
        var rest = ""
        /// Completes the sentence “Without it, …”.
        let consequence: String
    }

    static let unitLines = [
        RequiredLine(
            text: "ExecReload=/usr/local/bin/gifreel serve --check", rest: " --changed --config /etc/gifreel/gifreel.yaml",
            consequence: "a reload with a bad file reports success"),
        RequiredLine(text: "LimitNOFILE=65536", consequence: "connections and open renditions are limited by descriptors"),
        RequiredLine(text: "DynamicUser=yes", consequence: "the server may run as root"),
        RequiredLine(text: "NoNewPrivileges=yes", consequence: "a decoder that is taken over may gain privileges"),
        RequiredLine(text: "ProtectSystem=strict", consequence: "a decoder that is taken over may write to the system"),
        RequiredLine(text: "OOMPolicy=continue", consequence: "a worker that takes too much memory ends the service"),
        RequiredLine(text: "KillMode=mixed", consequence: "a stop ends workers before their clients are answered"),
        RequiredLine(text: "WatchdogSec=30", consequence: "a server that hangs is not started again"),
    ]

    static let nginxLines = [
        RequiredLine(text: "merge_slashes off;", consequence: "the URLs in paths lose a slash"),
        RequiredLine(
            text: "proxy_set_header Host", rest: " $host;", consequence: "links in pages have the address of the upstream"),
        RequiredLine(text: "proxy_set_header X-Forwarded-For", rest: " $remote_addr;", consequence: "all clients count as one"),
        RequiredLine(
            text: "proxy_set_header X-Forwarded-Proto", rest: " $scheme;", consequence: "links in pages begin with http:"),
        RequiredLine(text: "proxy_set_header Forwarded \"\";", consequence: "clients may forge their addresses"),
        RequiredLine(text: "proxy_set_header traceparent \"\";", consequence: "clients decide which requests are traced"),
        RequiredLine(text: "client_max_body_size", rest: " 21m;", consequence: "uploads over 1 MiB are refused"),
        RequiredLine(text: "proxy_read_timeout", rest: " 130s;", consequence: "long conversions end with 504 after 60 s"),
    ]

    /// Checks a file for the required lines of the shipped file.
    ///
    /// - Parameters:
    ///   - path: Nil if there is none.
    ///   - shipped: The path of the shipped file, for the advice.
    mutating func checkFile(_ check: String, _ path: String?, _ lines: [RequiredLine], shipped: String) {
        guard let path else { return pass(check, "there is no such file on this machine") }
        guard let bytes = try? Files.read(path) else {
            return warn(check, "\(path) cannot be read", "run gifreel doctor as a user who may read it")
        }
        let present = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
            .map { $0.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
        // The package installs the program elsewhere.
        let missing = lines.filter { line in
            let texts = [line.text, line.text.replacing("/usr/local/bin/", with: "/usr/bin/")]
            return !present.contains { line in texts.contains(where: line.hasPrefix) }
        }
        for line in missing {
            warn(check, "\(path) lacks a line of \(shipped); without it, \(line.consequence)", "add: \(line.text)\(line.rest)")
        }
        if missing.isEmpty { pass(check, "\(path) has what \(shipped) has") }
    }
}

/// Checks for causes that would make a start fail, without starting anything.
enum StartCheck {
    /// - Throws: ``SettingsError`` for the first setting with which the server could not start.
    static func check(_ configuration: ServiceConfiguration) throws(SettingsError) {
        try translating(try configuration.http.checkHost()) { (error: HTTPServerError) in
            SettingsError("server.host cannot be used. \(error)")
        }
        try translating(try configuration.http.checkGroup(), to: unusableGroup)
        try checkDirectory(of: configuration.settings.server.portFile, "server.port_file")
        if let path = configuration.settings.server.portFile, Files.isDirectory(path) {
            throw SettingsError("server.port_file is “\(path)”, which is a directory; name a file.")
        }
        try checkDirectory(of: configuration.http.unixPath, "server.unix_path")
        if let path = configuration.http.unixPath, Files.isSocket(path) == false { throw notASocket(path) }
        // The server creates the directory, so only an existing file in its place is wrong.
        let directory = Files.existing(configuration.cache.directory)
        guard Files.isDirectory(directory) || !Files.exists(directory) else {
            throw SettingsError(
                "cache.dir is “\(configuration.cache.directory)”, but \(directory) is not a directory; name another directory.")
        }
    }

    /// The error for a group of the Unix socket that does not exist.
    static func unusableGroup(_ error: HTTPServerError) -> SettingsError {
        SettingsError("server.unix_group cannot be used. \(error)")
    }

    /// The error for another file at the path of the Unix socket. The server replaces only a socket.
    static func notASocket(_ path: String) -> SettingsError {
        SettingsError("server.unix_path is “\(path)”, which exists and is not a socket; remove it or name another path.")
    }

    private static func checkDirectory(of path: String?, _ name: String) throws(SettingsError) {
        guard let path, !Files.isDirectory(Files.directory(of: path)) else { return }
        throw SettingsError("\(name) is “\(path)”, but the directory \(Files.directory(of: path)) does not exist; create it.")
    }
}

/// Checks how far the kernel confines the workers.
enum ConfinementCheck {
    /// Checks the confinement of the zygote.
    ///
    /// - Parameters:
    ///   - confinement: Nil if the zygote did not start.
    ///   - isRequired: `sandbox.require`.
    /// - Returns: A warning for the log if the kernel lacks something, or nil.
    /// - Throws: ``SettingsError`` if the server must not start.
    static func check(_ confinement: Confinement?, isRequired: Bool) throws(SettingsError) -> String? {
        guard let confinement else { throw SettingsError("The worker process does not start; see the log lines above.") }
        if confinement.missing.isEmpty { return nil }
        let names = confinement.missing.joined(separator: " and ")
        if isRequired {
            throw SettingsError(
                """
                The kernel, or a filter of system calls such as a container's, does not offer \(names), which the \
                confinement of workers needs. Set sandbox.require to false to run them all the same.
                """)
        }
        return
            """
            THE SANDBOX IS WEAK: the kernel, or a filter of system calls such as a container's, does not offer \(names), so a GIF that \
            takes over a worker can do more than it should
            """
    }
}
