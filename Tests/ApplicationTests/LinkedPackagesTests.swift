import TestSupport
import Testing

@testable import gifreel

@Suite("A statically linked library that is older than the installed package is named") struct LinkedPackagesTests {
    /// From older to newer, by Debian Policy section 5.6.12.
    @Test func versionsAreOrderedAsDpkgOrdersThem() {
        let versions = [
            "", "1~~", "1~~a", "1~", "1~rc1-1", "1", "1-0+deb12u1", "1-1", "1-1+b1", "1-2", "1-10", "1a", "1+", "1.0",
            "1.6.39-2",
            "1.6.39-2+deb12u1", "1.6.39-2+deb12u10", "1.6.40-1", "1.10-1", "2", "1:0.1", "7:5.1.8-0+deb12u1",
            "7:7.1.2-0+deb13u1",
            "10:0",
        ]
        for (index, left) in versions.enumerated() {
            for (other, right) in versions.enumerated() {
                #expect((DebianVersion(left) < DebianVersion(right)) == (index < other), "\(left) \(right)")
            }
        }
        #expect(DebianVersion("0:1.0-1") == DebianVersion("1.0-1") && DebianVersion("1.01") == DebianVersion("1.1"))
    }

    private static let status = """
        Package: libpng16-16
        Status: install ok installed
        Source: libpng1.6
        Version: 1.6.39-2+deb12u1
        Description: a text
         Version: 9

        Package: libpng-dev
        Status: deinstall ok config-files
        Source: libpng1.6
        Version: 1.7

        Package: libaom3
        Status: install ok installed
        Source: aom (3.6.0-1+deb12u2)
        Version: 3.6.0-1+deb12u2+b1

        Package: libvpx
        Status: install ok installed
        Version: 1.12.0-1+deb12u3

        Package: ffmpeg
        Status: install ok installed
        Version: 7:5.1.6-0+deb12u1

        """

    @Test func aNewerPackageOfTheSameSourceIsNamed() throws {
        let directory = try ScratchDirectory()
        let file = try directory.write("status", Self.status)
        let program = LinkedPackages(
            "aom=3.6.0-1+deb12u1,ffmpeg=7:5.1.8-0+deb12u1,libpng1.6=1.6.39-2,libvpx=1.12.0-1+deb12u3,libwebp=1.2.4-0.2+deb12u1")
        #expect(
            program.outdated(status: file) == [
                OutdatedPackage(name: "aom", linked: "3.6.0-1+deb12u1", installed: "3.6.0-1+deb12u2"),
                OutdatedPackage(name: "libpng1.6", linked: "1.6.39-2", installed: "1.6.39-2+deb12u1"),
            ])
        #expect(program.outdated(status: directory.path("none")).isEmpty)
        #expect(LinkedPackages("").versions.isEmpty && LinkedPackages("").outdated(status: file).isEmpty)
    }
}
