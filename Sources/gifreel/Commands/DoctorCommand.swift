internal import ArgumentParser
internal import CLinux
internal import Foundation
internal import Sandbox
internal import Settings
internal import SystemIO

/// `gifreel doctor`: goes through the production checklist.
struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Checks the settings and this machine for production.",
        discussion: """
            Reads the settings as gifreel serve does. Each line that is not ok says what to type. The server need not run.

            Exit status: 0 if nothing fails, 1 if something does. Warnings do not count.
            """)

    @OptionGroup var settings: SettingsArguments

    @Option(help: "The unit of systemd to check. Default: gifreel.service where systemd looks.", completion: .file())
    var unit: String?

    @Option(help: "The site of nginx to check. Default: /etc/nginx/sites-enabled/gifreel.", completion: .file())
    var nginx: String?

    @Flag(help: "Prints the findings as JSON.")
    var json = false

    private static let units = ["/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"].map {
        "\($0)/systemd/system/gifreel.service"
    }
    private static let sites = ["/etc/nginx/sites-enabled/gifreel", "/etc/nginx/conf.d/gifreel.conf"]

    func run() throws {
        // Before any other thread: the zygote is a fork of this process.
        let zygote = try? Zygote.spawn()
        defer { zygote?.stop() }
        clinux_raise_descriptor_limit()
        var checkup = Checkup()
        let configuration = try ServiceConfiguration(try settings.read().settings)
        try StartCheck.check(configuration)
        checkup.checkAccess(configuration)
        checkup.checkDisk(configuration)
        checkup.checkDescriptors(configuration)
        checkup.checkKernel(zygote?.confinement(), configuration)
        checkup.checkClock()
        checkup.checkLibraries(LinkedPackages.program.outdated())
        checkup.checkFile(
            "unit", unit ?? Self.units.first(where: Files.exists), Checkup.unitLines, shipped: "config/systemd/gifreel.service")
        checkup.checkFile(
            "nginx", nginx ?? Self.sites.first(where: Files.exists), Checkup.nginxLines, shipped: "config/nginx/gifreel.conf")
        show(checkup)
        if checkup.hasFailed { throw ExitCode.failure }
    }

    private func show(_ checkup: Checkup) {
        if json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            // The findings are texts, which always can be encoded.
            if let data = try? encoder.encode(checkup.findings) { print(String(decoding: data, as: UTF8.self)) }
            return
        }
        for finding in checkup.findings {
            let (state, check) = (Self.padded(finding.state.rawValue, 8), Self.padded(finding.check, 12))
            print("\(state) \(check) \(finding.text)")
            if let advice = finding.advice { print(Self.padded("", 22) + "→ \(advice)") }
        }
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text.padding(toLength: max(width, text.count), withPad: " ", startingAt: 0)
    }
}
