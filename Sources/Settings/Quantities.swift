internal import Fetch
internal import Media

/// A number of bytes.
package struct ByteCount: Sendable, Hashable, Comparable {
    package var bytes: Int

    package init(bytes: Int) {
        self.bytes = bytes
    }

    package static let zero = ByteCount(bytes: 0)

    package static func bytes(_ count: Int) -> ByteCount { ByteCount(bytes: count) }
    package static func mebibytes(_ count: Int) -> ByteCount { ByteCount(bytes: count << 20) }
    package static func gibibytes(_ count: Int) -> ByteCount { ByteCount(bytes: count << 30) }
    static func tebibytes(_ count: Int) -> ByteCount { ByteCount(bytes: count << 40) }

    package static func < (left: ByteCount, right: ByteCount) -> Bool { left.bytes < right.bytes }

    private static let units = [
        Unit(name: "TiB", factor: 1 << 40), Unit(name: "GiB", factor: 1 << 30), Unit(name: "MiB", factor: 1 << 20),
        Unit(name: "KiB", factor: 1 << 10), Unit(name: "B", factor: 1), Unit(name: "", factor: 1),
    ]

    /// Parses `20MiB`, `1.5 GiB` or `1048576`. Nil for anything else, and for counts from 2^63 on.
    package init?(settingText text: String) {
        guard let count = Unit.parse(text, Self.units) else { return nil }
        bytes = count
    }

    package var settingText: String { Unit.text(bytes, Self.units) }
}

extension Duration {
    private static let units = [
        Unit(name: "d", factor: 86_400_000), Unit(name: "h", factor: 3_600_000), Unit(name: "m", factor: 60_000),
        Unit(name: "s", factor: 1000), Unit(name: "ms", factor: 1), Unit(name: "", factor: 1000),
    ]

    /// Parses `500ms`, `10s`, `5m`, `1h`, `7d` or `90` (seconds), to the millisecond. Nil for anything else, and for times
    /// from 2^63 ms on.
    package init?(settingText text: String) {
        guard let milliseconds = Unit.parse(text, Self.units) else { return nil }
        self = .milliseconds(milliseconds)
    }

    package var settingText: String {
        // Uses integer arithmetic: dividing durations yields a Double, which can lose a millisecond.
        let (seconds, attoseconds) = components
        return Unit.text(Int(seconds * 1000 + attoseconds / 1_000_000_000_000_000), Self.units)
    }
}

/// TCP ports from 1 to 65535: one, or a range.
package struct PortRange: Sendable, Equatable, UnrangedScalar {
    package static let kind = Setting.Kind.text
    package static let expectation = "a port from 1 to 65535, or a range such as 8000-8999"

    package let ports: ClosedRange<Int>
}

extension PortRange {
    /// Parses `80` or `8000-8999`.
    package init?(settingText text: String) {
        let bounds = text.split(separator: "-", omittingEmptySubsequences: false).map { UInt16($0).map(Int.init) ?? 0 }
        guard (1...2).contains(bounds.count), bounds[0] >= 1, bounds[0] <= bounds[bounds.count - 1] else { return nil }
        self.init(ports: bounds[0]...bounds[bounds.count - 1])
    }

    package var settingText: String {
        ports.count == 1 ? "\(ports.lowerBound)" : "\(ports.lowerBound)-\(ports.upperBound)"
    }
}

// Numbers of a configuration, presented as quantities. The row of each setting in the table defines its range.

extension FixedWidthInteger {
    var byteCount: ByteCount {
        get { ByteCount(bytes: Int(self)) }
        set { self = Self(newValue.bytes) }
    }

    var wholeSeconds: Duration {
        get { .seconds(Int64(self)) }
        set { self = Self(newValue.components.seconds) }
    }

    /// A time in hundredths of a second.
    var centiseconds: Duration {
        get { .milliseconds(10) * Int(self) }
        set {
            // Uses integer arithmetic: dividing durations yields a Double, which can be off by one.
            let (seconds, attoseconds) = newValue.components
            self = Self(seconds * 100 + attoseconds / 10_000_000_000_000_000)
        }
    }
}

extension UInt32? {
    var permissionBits: PermissionBits? {
        get { map(PermissionBits.init(bits:)) }
        set { self = newValue?.bits }
    }
}

extension PortSet {
    var list: [PortRange] {
        get { ranges.map(PortRange.init(ports:)) }
        set { ranges = newValue.map(\.ports) }
    }
}

extension SourceFormats {
    var list: [SourceFormat] {
        get { SourceFormat.allCases.filter(contains) }
        set { self = SourceFormats(newValue) }
    }
}

/// Permission bits of a file from 0 to 0777, in octal.
package struct PermissionBits: Sendable, Equatable, UnrangedScalar {
    package static let kind = Setting.Kind.text
    package static let expectation = "an octal number from 0 to 0777"

    let bits: UInt32
}

extension PermissionBits {
    package init?(settingText text: String) {
        guard let bits = UInt32(text, radix: 8), bits <= 0o777, text.first != "+" else { return nil }
        self.init(bits: bits)
    }

    package var settingText: String { "0" + String(bits, radix: 8) }
}

/// A unit of a quantity and its size in the smallest unit.
private struct Unit {
    let name: String
    let factor: Int

    /// The quantity in the smallest unit, rounded; nil if the text is not a number with one of the units.
    static func parse(_ text: String, _ units: [Unit]) -> Int? {
        let digits = text.prefix { ("0"..."9").contains($0) || $0 == "." }
        let name = text.dropFirst(digits.count).drop { $0 == " " }
        guard !digits.isEmpty, let unit = units.first(where: { $0.name == name }) else { return nil }
        if let whole = Int(digits) {
            let (count, overflow) = whole.multipliedReportingOverflow(by: unit.factor)
            return overflow ? nil : count
        }
        guard let number = Double(digits) else { return nil }
        let count = (number * Double(unit.factor)).rounded()
        return count < 9e18 ? Int(count) : nil
    }

    /// The quantity in the largest unit that divides it.
    static func text(_ count: Int, _ units: [Unit]) -> String {
        let unit = units.first { count % $0.factor == 0 && (count != 0 || $0.factor == 1) && !$0.name.isEmpty }
        return unit.map { "\(count / $0.factor)\($0.name)" } ?? "\(count)"
    }
}
