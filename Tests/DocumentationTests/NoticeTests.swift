import Foundation
import TestSupport
import Testing

/// The licences of what is linked, docs/NOTICES.md. The bill of materials takes those of Swift packages from there.
@Suite("The notices name what is linked") struct NoticeTests {
    @Test func everySwiftPackageHasALicence() throws {
        let manifest = try Document("Package.swift").text
        let notices = try Document("docs/NOTICES.md").text
        let packages = manifest.matches(of: /\.package\(url: "(.+)", exact: "(\d+\.\d+)\.\d+"\)/)
        #expect(packages.count > 4)
        for dependency in packages {
            let row = notices.split(separator: "\n").first { $0.contains("](\(dependency.1))") }
            let cells = row?.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) } ?? []
            #expect(cells.count == 4 && cells[1] == String(dependency.2) && !cells[2].isEmpty, "\(dependency.1)")
        }
    }
}
