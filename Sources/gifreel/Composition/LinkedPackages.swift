internal import CLinux
internal import SystemIO

/// A library that the program contains in an older version than this machine's package: the program lacks the fixes made since.
package struct OutdatedPackage: Sendable, Equatable, CustomStringConvertible {
    /// The name of the source package.
    package let name: String
    package let linked: String
    package let installed: String

    package var description: String {
        "the program contains \(name) \(linked), and the machine has \(installed): build it again, or install a newer gifreel"
    }
}

/// The libraries whose code is part of the program, by their Debian source packages.
package struct LinkedPackages: Sendable {
    /// Names and versions.
    package let versions: [String: String]

    /// The versions in this program; empty if it was built without `scripts/lib/build.sh`, or with shared libraries.
    package static let program = LinkedPackages(String(cString: clinux_build_libraries()))

    /// - Parameter text: `name=version`, separated by commas.
    package init(_ text: String) {
        let pairs = text.split(separator: ",").map { $0.split(separator: "=", maxSplits: 1).map { String($0) } }
        versions = Dictionary(pairs.filter { $0.count == 2 }.map { ($0[0], $0[1]) }) { first, _ in first }
    }

    /// The packages that are installed in a newer version, sorted by name. Blocks for some milliseconds. Empty on a machine
    /// without dpkg.
    package func outdated(status path: String = "/var/lib/dpkg/status") -> [OutdatedPackage] {
        guard !versions.isEmpty, let status = try? Files.read(path) else { return [] }
        var newest = versions
        for paragraph in status.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .split(whereSeparator: \.isEmpty)
        {
            guard let (name, version) = Self.source(paragraph), let known = newest[name],
                DebianVersion(known) < DebianVersion(version)
            else { continue }
            newest[name] = version
        }
        return versions.sorted { $0.key < $1.key }.compactMap { name, linked in
            newest[name].flatMap { $0 == linked ? nil : OutdatedPackage(name: name, linked: linked, installed: $0) }
        }
    }

    /// The source package of an installed package and its version; nil if the package is not installed.
    private static func source(_ paragraph: ArraySlice<ArraySlice<UInt8>>) -> (name: String, version: String)? {
        var (package, source, version, isInstalled) = ("", "", "", false)
        for line in paragraph {
            if let text = value(of: "Package: ", in: line) { package = text }
            if let text = value(of: "Source: ", in: line) { source = text }
            if let text = value(of: "Version: ", in: line) { version = text }
            if let text = value(of: "Status: ", in: line) { isInstalled = text.hasSuffix(" installed") }
        }
        guard isInstalled else { return nil }
        // `Source: name (version)` where the versions of package and source differ.
        let parts = source.split(separator: " ")
        let named = parts.count == 2 ? String(parts[1].dropFirst().dropLast()) : version
        return (parts.first.map { String($0) } ?? package, named)
    }

    private static func value(of field: StaticString, in line: ArraySlice<UInt8>) -> String? {
        let name = UnsafeBufferPointer(start: field.utf8Start, count: field.utf8CodeUnitCount)
        return line.starts(with: name) ? String(decoding: line.dropFirst(name.count), as: UTF8.self) : nil
    }
}

/// A version of a Debian package, in the order of Debian Policy section 5.6.12.
package struct DebianVersion: Comparable, Sendable {
    /// The keys of epoch, upstream version and revision.
    private let keys: [[Int]]

    package init(_ text: String) {
        let colon = text.firstIndex(of: ":")
        let version = colon.map { text[$0...].dropFirst() } ?? text[...]
        let hyphen = version.lastIndex(of: "-")
        let revision = hyphen.map { version[$0...].dropFirst() } ?? ""
        keys = [
            [colon.flatMap { Int(text[..<$0]) } ?? 0], Self.key(version[..<(hyphen ?? version.endIndex)]), Self.key(revision),
        ]
    }

    package static func < (left: DebianVersion, right: DebianVersion) -> Bool {
        for (a, b) in zip(left.keys, right.keys) where a != b {
            // The end of a text comes after a tilde.
            let zeros = Array(repeating: 0, count: max(a.count, b.count))
            return (a + zeros[a.count...]).lexicographicallyPrecedes(b + zeros[b.count...])
        }
        return false
    }

    /// Returns alternately the weights of the characters before a number, which a zero ends, and the number. Zeros at the end make
    /// no difference.
    private static func key(_ text: Substring) -> [Int] {
        var key: [Int] = []
        var rest = text.utf8[...]
        while !rest.isEmpty {
            let digits = rest.drop { !isDigit($0) }.prefix(while: isDigit)
            key += rest[..<digits.startIndex].map(weight) + [0, digits.isEmpty ? 0 : Int(Substring(digits)) ?? .max]
            rest = rest[digits.endIndex...]
        }
        while key.last == 0 { key.removeLast() }
        return key
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    /// A tilde comes before the end, which comes before letters, which come before all else.
    private static func weight(_ byte: UInt8) -> Int {
        if byte == UInt8(ascii: "~") { return -1 }
        return (0x61...0x7A).contains(byte | 0x20) ? Int(byte) : Int(byte) + 256
    }
}
