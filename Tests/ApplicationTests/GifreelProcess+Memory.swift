import Foundation

extension GifreelProcess {
    struct NoSuchLine: Error {}

    /// A figure of `/proc/PID/status` in bytes, such as `VmHWM`, the most memory that was ever resident.
    func memory(_ name: String) throws -> Int {
        let text = try String(contentsOfFile: "/proc/\(identifier)/status", encoding: .utf8)
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix(name + ":") }),
            let kilobytes = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap({ Int($0) })
        else { throw NoSuchLine() }
        return kilobytes * 1024
    }
}
