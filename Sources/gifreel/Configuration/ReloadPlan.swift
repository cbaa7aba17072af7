/// What reading the settings again changes: what takes effect now, and what only a restart brings.
struct ReloadPlan: Equatable {
    /// Names of settings that have another value now, by which is answered from here on.
    private(set) var changed: [String] = []
    /// Names of settings that have another value now, which stays without effect until a restart.
    private(set) var waiting: [String] = []

    /// - Parameters:
    ///   - old: Values by the settings' names, as ``SettingsReader/values()`` gives them.
    ///   - new: The same, as they are now.
    init(from old: [String: String], to new: [String: String]) {
        for name in Set(old.keys).union(new.keys).sorted() where old[name] != new[name] {
            if Setting.named(name)?.isReadAgain ?? true { changed.append(name) } else { waiting.append(name) }
        }
    }
}

extension Setting {
    /// Whether SIGHUP brings a new value into force. The others are built into what lives as long as the process: sockets,
    /// threads, the open cache.
    package var isReadAgain: Bool {
        let parts = name.split(separator: ".")
        switch parts.first {
        case "server": return ["allow_origin", "shutdown_delay"].contains(parts[1])
        case "cache": return !["dir", "max_bytes", "min_free_bytes", "fresh_for", "stale_for"].contains(parts[1])
        case "transcode": return !["workers", "queue"].contains(parts[1])
        case "prewarm": return false
        case "log": return name == "log.level"
        default: return true
        }
    }
}
