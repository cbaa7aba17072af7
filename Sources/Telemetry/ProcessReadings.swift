internal import Glibc

/// Readings about this process from the kernel (proc(5)). They block for microseconds, longer with many open descriptors.
package struct ProcessReadings: Sendable {
    private let started: Int

    package init() {
        started = time(nil)
    }

    package func samples() -> [MetricSample] {
        var samples = [
            MetricSample.gauge("process_start_time_seconds", started, "Start time of the server in seconds since 1970.")
        ]
        var usage = rusage()
        if getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 {
            samples.append(
                .counter(
                    "process_cpu_seconds_total", Self.seconds(usage.ru_utime) + Self.seconds(usage.ru_stime),
                    "Processor time of the server without its workers."))
        }
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            samples.append(.gauge("process_max_fds", limit.rlim_cur, "Limit of open file descriptors."))
        }
        if let count = Self.openDescriptors() { samples.append(.gauge("process_open_fds", count, "Open file descriptors.")) }
        if let (total, resident) = Self.memory() {
            samples.append(.gauge("process_virtual_memory_bytes", total, "Virtual memory of the server."))
            samples.append(.gauge("process_resident_memory_bytes", resident, "Resident memory of the server."))
        }
        return samples
    }

    private static func seconds(_ time: timeval) -> Double {
        Double(time.tv_sec) + Double(time.tv_usec) / 1e6
    }

    private static func openDescriptors() -> Int? {
        guard let directory = opendir("/proc/self/fd") else { return nil }
        defer { closedir(directory) }
        var count = 0
        while readdir(directory) != nil { count += 1 }
        // Two entries are `.` and `..`, and one descriptor belongs to this reading.
        return max(0, count - 3)
    }

    /// Returns virtual and resident bytes, from the first two numbers of `statm`, which are in pages.
    private static func memory() -> (total: Int, resident: Int)? {
        guard let file = fopen("/proc/self/statm", "re") else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 128)
        guard fgets(&line, Int32(line.count), file) != nil else { return nil }
        let numbers = line.prefix { $0 != 0 }.split(separator: 32).prefix(2)
            .compactMap { Int(String(decoding: $0.map { UInt8(bitPattern: $0) }, as: UTF8.self)) }
        guard numbers.count == 2 else { return nil }
        let page = sysconf(Int32(_SC_PAGESIZE))
        return (numbers[0] * page, numbers[1] * page)
    }
}
