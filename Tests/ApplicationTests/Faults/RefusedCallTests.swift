import CLinux
import CSystemCalls
import Foundation
import TestSupport
import Testing

@Suite("A kernel, or a filter of system calls, that refuses calls", .timeLimit(.minutes(5))) struct RefusedCallTests {
    private static let gif = GIFBuilder.animation(frames: 2, width: 9, height: 9)

    /// Runs `body` with a server for which calls fail, or with the log of one that does not start.
    ///
    /// A process inherits the system call filter and the capabilities of the thread that starts it, and the thread ends with this
    /// function.
    private func start<Outcome: Sendable>(
        _ settings: [String], refusing calls: [csystemcalls_number: Int32], keepingCapabilities: Bool = true,
        _ body: @escaping @Sendable (_ server: GifreelProcess?, _ log: String) throws -> Outcome
    ) throws -> Outcome {
        let outcome = try atOnce(1) { _ -> Outcome? in
            guard clinux_no_new_privileges() == 0, keepingCapabilities || clinux_drop_capabilities() == 0,
                calls.allSatisfy({ csystemcalls_refuse(Int32(bitPattern: $0.rawValue), $1) == 0 })
            else { return nil }
            do {
                let server = try GifreelProcess(settings)
                return try body(server, server.log)
            } catch let error as GifreelProcess.NotStarted {
                return try body(nil, error.log)
            }
        }[0]
        return try #require(outcome, "a filter of system calls cannot be installed")
    }

    /// A container's filter refuses what it does not know with EPERM.
    @Test(arguments: [ENOSYS, EPERM]) func landlockStopsTheStart(_ code: Int32) throws {
        let log = try start([], refusing: [csystemcalls_landlock_create_ruleset: code]) { $0 == nil ? $1 : "it started" }
        #expect(log.contains("does not offer landlock, which"), "\(log)")
    }

    @Test(arguments: [ENOSYS, EPERM]) func landlockIsMissedInTheLogWhereTheSandboxIsNotRequired(_ code: Int32) throws {
        let log = try start(["sandbox.require=false"], refusing: [csystemcalls_landlock_create_ruleset: code]) {
            $0 == nil ? "it did not start: \($1)" : $1
        }
        #expect(log.contains("a filter of system calls such as a container's, does not offer landlock, so"), "\(log)")
    }

    /// systemd's filter for services refuses `capset`, and `RestrictSUIDSGID=` the call `openat2`, which also fails with EAGAIN
    /// for paths with `..` while other files are renamed.
    @Test(arguments: [ENOSYS, EAGAIN]) func aServiceOfSystemdConvertsTheFilesOfAMount(_ code: Int32) throws {
        let directory = try ScratchDirectory()
        let root = directory.path("root")
        for path in ["secret.gif", "root/in/a.gif"] { try directory.write(path, "") }
        for path in [directory.path("secret.gif"), root + "/in/a.gif"] {
            try Data(Self.gif).write(to: URL(fileURLWithPath: path))
        }
        for (link, target) in [("inside", "in/a.gif"), ("outside", "../secret.gif"), ("absolute", "/etc/passwd")] {
            try FileManager.default.createSymbolicLink(atPath: "\(root)/\(link).gif", withDestinationPath: target)
        }
        let paths = ["in/a", "inside", "outside", "absolute", "none", "in"]
        let answers = try start(
            ["mounts.disk.origin=file://\(root)"], refusing: [csystemcalls_capset: EPERM, csystemcalls_openat2: code],
            keepingCapabilities: false
        ) { server, log in
            try paths.map { path in try server.map { "\(try $0.request("GET", "/disk/\(path).mp4").status)" } ?? log }
        }
        #expect(answers == ["200", "200", "404", "404", "404", "404"])
    }

    /// Sources are in memory files. Neither the load nor the source is at fault, and an upload does not count for its client.
    @Test func aSourceThatMemoryRefusesIsAFaultOfTheServer() throws {
        let directory = try ScratchDirectory()
        try Data(Self.gif).write(to: URL(fileURLWithPath: directory.path("a.gif")))
        let form = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.gif\"\r\n\r\n"
        let answers = try start(
            ["mounts.disk.origin=file://\(directory.path)", "rate_limit.uploads_per_minute=1", "rate_limit.upload_burst=1"],
            refusing: [csystemcalls_memfd_create: ENOMEM]
        ) { server, log -> [String] in
            guard let server else { return [log] }
            let answers = [
                try server.request("POST", "/mp4", body: Self.gif),
                try server.request(
                    "POST", "/mp4", headers: ["Content-Type: multipart/form-data; boundary=x"],
                    body: Array(form.utf8) + Self.gif + Array("\r\n--x--\r\n".utf8)),
                try server.request("GET", "/disk/a.mp4"),
            ]
            let lines = { server.log.split(separator: "\n").count { $0.contains("warning gifreel: request failed ") } }
            try blockUntil("three lines in \(server.log)") { lines() == 3 }
            return answers.map { "\($0.status) \($0.text.contains("Too many"))" }
        }
        #expect(answers == Array(repeating: "503 false", count: 3))
    }

    @Test(.enabled(if: geteuid() == 0, "Others have no capabilities.")) func capabilitiesThatCannotBeDroppedAreNamed() throws {
        let log = try start([], refusing: [csystemcalls_capset: EPERM]) { $0 == nil ? $1 : "it started" }
        #expect(log.contains("the worker process cannot confine itself: capset: "), "\(log)")
    }

    /// glibc starts threads with `clone3`, and forks with `clone`.
    @Test func convertNeedsNoThreads() throws {
        let directory = try ScratchDirectory()
        let files = ["a", "b"].map { directory.path($0 + ".gif") }
        for file in files { try Data(Self.gif).write(to: URL(fileURLWithPath: file)) }
        let executable = GifreelProcess.executable.path
        let words = ["gifreel", "convert", "--to", directory.path("out")] + files
        var arguments = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        let process = clinux_fork()
        if process == 0 {
            if csystemcalls_refuse(Int32(bitPattern: csystemcalls_clone3.rawValue), EAGAIN) == 0 {
                execv(executable, &arguments)
            }
            _exit(127)
        }
        var status: Int32 = 0
        #expect(waitpid(process, &status, 0) == process && status == 0)
        #expect(directory.names(in: "out") == ["a.mp4", "b.mp4"])
    }

    /// An unprivileged process cannot raise the hard limits that it inherits.
    @Test func aConversionKeepsLowerLimitsThatItInherits() throws {
        let directory = try ScratchDirectory()
        let source = directory.path("a.gif")
        try Data(Self.gif).write(to: URL(fileURLWithPath: source))
        let limits = "ulimit -t 20 && ulimit -f 131072 && ulimit -u 900"
        let command = "\(limits) && exec '\(GifreelProcess.executable.path)' convert '\(source)' '\(directory.path("a.mp4"))'"
        let outcome = try ChildProcess(
            URL(fileURLWithPath: "/bin/bash"), ["-c", command], environment: ProcessInfo.processInfo.environment, input: []
        ).finish()
        #expect(outcome.code == 0 && directory.names() == ["a.gif", "a.mp4"], "\(outcome.log)")
    }
}
