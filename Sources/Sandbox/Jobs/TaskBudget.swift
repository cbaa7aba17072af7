internal import SystemIO

/// The number of processes and threads that a worker may start.
///
/// A worker's limit counts all processes and threads of its user on the system, and a worker that is taken over could use it
/// up. A container or a service has a limit of its own (`pids.max` of its control group). A worker gets at most half of the
/// remainder, because the server and other workers need the rest.
enum TaskBudget {
    /// The tasks beyond the existing ones. An encoder needs a few dozen, and other workers start theirs meanwhile.
    static var spareTasks: Int { spareTasks(limit: number("pids.max"), current: number("pids.current")) }

    private static let most = 1024
    /// The number of tasks that suffices for any encoder.
    static let least = 32

    /// - Parameters:
    ///   - limit: The limit of the control group; nil for none.
    ///   - current: The tasks of the control group; nil if unknown.
    static func spareTasks(limit: Int?, current: Int?) -> Int {
        guard let limit else { return most }
        return min(most, max(least, (limit - min(limit, current ?? 0)) / 2))
    }

    /// The folder of this process's control group (cgroups(7)), version 2.
    private static let folder: String = {
        let text = (try? Files.read("/proc/self/cgroup")).map { String(decoding: $0, as: UTF8.self) } ?? ""
        let path = text.split(separator: "\n").first { $0.hasPrefix("0::/") }?.dropFirst(3) ?? "/"
        return "/sys/fs/cgroup" + (path == "/" ? "" : path)
    }()

    private static func number(_ file: String) -> Int? {
        guard let bytes = try? Files.read("\(folder)/\(file)") else { return nil }
        return Int(String(decoding: bytes, as: UTF8.self).filter { !$0.isWhitespace })
    }
}
