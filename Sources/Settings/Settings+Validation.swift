extension Settings {
    /// Checks combinations of settings. The range of each single value is checked when it is read.
    ///
    /// - Throws: ``SettingsError`` for the first combination that cannot work.
    package func validate() throws(SettingsError) {
        if server.host == nil && server.unixPath == nil {
            throw SettingsError("server.host is empty and server.unix_path is not set; set one of them to listen on.")
        }
        if let path = server.unixPath, path.utf8.count > 107 {
            throw SettingsError("server.unix_path has \(path.utf8.count) bytes; a Unix socket's path has at most 107.")
        }
        if let mode = server.unixMode, UInt32(mode, radix: 8).map({ $0 > 0o777 }) ?? true {
            throw SettingsError("server.unix_mode is “\(mode)”; it must be an octal number from 0 to 0777.")
        }
        if cache.minFreshFor > cache.maxFreshFor {
            throw SettingsError(
                "cache.min_fresh_for (\(cache.minFreshFor.settingText)) is longer than cache.max_fresh_for "
                    + "(\(cache.maxFreshFor.settingText)); it must not be.")
        }
        if sources.ports.isEmpty {
            throw SettingsError("sources.ports is empty; it must name at least one port.")
        }
        try requireKeys("sources.require_signature", sources.requireSignature)
        for (name, mount) in mounts.sorted(by: { $0.key < $1.key }) {
            if mount.origin == nil { throw SettingsError("mounts.\(name).origin is missing; a mount needs an origin.") }
            try requireKeys("mounts.\(name).require_signature", mount.requireSignature)
        }
    }

    /// A server that is meant to require signatures must not start without them because a secret is missing.
    private func requireKeys(_ name: String, _ isRequired: Bool?) throws(SettingsError) {
        guard isRequired == true && signing.keys.isEmpty else { return }
        throw SettingsError("\(name) is true but signing.keys holds no key; set a key or remove \(name).")
    }
}
