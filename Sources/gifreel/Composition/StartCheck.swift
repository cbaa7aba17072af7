internal import HTTP
internal import Sandbox
internal import Settings
internal import Store
internal import SystemIO

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
        var directory = configuration.cache.directory
        while !Files.exists(directory), Files.directory(of: directory) != directory {
            directory = Files.directory(of: directory)
        }
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
