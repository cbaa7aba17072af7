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
    private let epoch: Int
    private let upstream: [UInt8]
    private let revision: [UInt8]

    package init(_ text: String) {
        let bytes = Array(text.utf8)
        let colon = bytes.firstIndex(of: UInt8(ascii: ":"))
        epoch = colon.flatMap { Int(String(decoding: bytes[..<$0], as: UTF8.self)) } ?? 0
        let rest = bytes[(colon.map { $0 + 1 } ?? 0)...]
        let hyphen = rest.lastIndex(of: UInt8(ascii: "-"))
        upstream = Array(rest[..<(hyphen ?? rest.endIndex)])
        revision = hyphen.map { Array(rest[($0 + 1)...]) } ?? []
    }

    package static func < (left: DebianVersion, right: DebianVersion) -> Bool { order(left, right) < 0 }

    package static func == (left: DebianVersion, right: DebianVersion) -> Bool { order(left, right) == 0 }

    /// Negative if `left` is older, positive if it is newer.
    private static func order(_ left: DebianVersion, _ right: DebianVersion) -> Int {
        if left.epoch != right.epoch { return left.epoch < right.epoch ? -1 : 1 }
        let upstream = order(left.upstream[...], right.upstream[...])
        return upstream != 0 ? upstream : order(left.revision[...], right.revision[...])
    }

    /// Compares non-digit parts and numbers alternately.
    private static func order(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Int {
        var (left, right) = (left, right)
        while !left.isEmpty || !right.isEmpty {
            while left.first.map({ !isDigit($0) }) ?? false || right.first.map({ !isDigit($0) }) ?? false {
                let difference = weight(left.first) - weight(right.first)
                if difference != 0 { return difference }
                left = left.dropFirst()
                right = right.dropFirst()
            }
            let (a, b) = (left.prefix(while: isDigit), right.prefix(while: isDigit))
            let (x, y) = (a.drop { $0 == UInt8(ascii: "0") }, b.drop { $0 == UInt8(ascii: "0") })
            if x.count != y.count { return x.count - y.count }
            if let pair = zip(x, y).first(where: { $0 != $1 }) { return Int(pair.0) - Int(pair.1) }
            left = left.dropFirst(a.count)
            right = right.dropFirst(b.count)
        }
        return 0
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    /// A tilde comes before the end, which comes before letters, which come before all else.
    private static func weight(_ byte: UInt8?) -> Int {
        guard let byte, !isDigit(byte) else { return 0 }
        if byte == UInt8(ascii: "~") { return -1 }
        let isLetter =
            (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
        return isLetter ? Int(byte) : Int(byte) + 256
    }
}
