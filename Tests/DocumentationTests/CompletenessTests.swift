import Foundation
import TestSupport
import Testing

/// Lists in documents that have to name each member of a set.
@Suite("Lists in documents are complete") struct CompletenessTests {
    /// Returns the text of a section, up to the next heading of its level.
    private func section(_ heading: String, of path: String) throws -> String {
        let sections = try Document(path).text.components(separatedBy: "\n## ")
        return try #require(sections.first { $0.hasPrefix(heading + "\n") }, "\(path): \(heading)")
    }

    /// The rows of the settings, each with its name.
    private func settings() throws -> [(name: String, row: String)] {
        try Document("docs/configuration.md").text.matches(of: /(?m)^\| `([A-Za-z0-9_.]+)`<br>.*$/)
            .map { (String($0.1), String($0.0)) }
    }

    @Test func theContentsOfADocumentNameEverySection() throws {
        var checked = 0
        for document in try Document.all() {
            let parts = document.prose.components(separatedBy: "\n## ")
            guard parts[0].contains("\n- [") else { continue }
            for title in parts.dropFirst().map({ $0.prefix { $0 != "\n" } }) {
                checked += 1
                #expect(parts[0].contains("\n- [\(title)](#"), "\(document): \(title)")
            }
        }
        #expect(checked > 50)
    }

    @Test func theDocumentOnSecurityNamesEverySecret() throws {
        let text = try section("Secrets", of: "docs/SECURITY.md")
        let secrets = try settings().filter { $0.row.hasSuffix(" Secret. |") }
        #expect(secrets.count > 10)
        for secret in secrets { #expect(text.contains("`\(secret.name)`"), "\(secret.name)") }
    }

    @Test func theInterfaceStatesTheLimitsOfATarget() throws {
        let text = try section("Renditions", of: "docs/api.md")
        let limits = [
            ("Fetch/URL/SourceURL.swift", "maxLength", "bytes"),
            ("Web/Routing/RouteParser.swift", "maxParameters", "parameters"),
        ]
        for (file, name, unit) in limits {
            let pattern = try Regex("static let \(name) = (\\d+)", as: (Substring, Substring).self)
            let limit = try #require(try Document("Sources/\(file)").text.firstMatch(of: pattern)).1
            #expect(text.contains("at most \(limit) \(unit)"), "\(name)")
        }
    }

    /// A shell reads the unit's file of variables in another way than systemd: a value with spaces or parentheses is an error there.
    @Test func doctorIsRunWithTheSettingsOfTheUnit() throws {
        let blocks = try Document("docs/operations.md").codeBlocks.map(\.text)
        let command = try #require(blocks.first { $0.contains("gifreel doctor --config /etc/gifreel/gifreel.yaml") })
        let unit = try Document("config/systemd/gifreel.service").text.split(separator: "\n")
        let lines = unit.filter { $0.hasPrefix("Environment") || $0.hasPrefix("LimitNOFILE=") }
        #expect(lines.count == 3)
        for line in lines { #expect(command.contains(" -p \(line)"), "\(line)") }
    }

    @Test func theRoutesThatNeedTheAdminTokenAreNamedWhereItIsDescribed() throws {
        let table = try section("Administration", of: "docs/api.md")
        let paths = Set(table.matches(of: /`(?:GET|POST|DELETE) (\/[a-z]+)[^`]*` \|/).map { String($0.1) })
        #expect(paths.count >= 5, "\(paths)")
        let access = try section("Administration and metrics", of: "docs/access.md")
        let row = try #require(try settings().first { $0.name == "admin.token" }).row
        for path in paths {
            #expect(access.contains("`\(path)`"), "\(path)")
            #expect(row.contains(path), "\(path)")
        }
    }
}
