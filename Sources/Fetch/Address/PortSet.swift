/// A set of TCP ports, given as single ports and ranges.
package struct PortSet: Hashable, Sendable, ExpressibleByArrayLiteral {
    private var ranges: [ClosedRange<Int>]

    /// - Parameter ranges: Ranges as ``range(_:)`` returns them.
    package init(_ ranges: [ClosedRange<Int>]) {
        self.ranges = ranges
    }

    package init(arrayLiteral ports: Int...) {
        ranges = ports.map { $0...$0 }
    }

    /// All ports.
    package static let all = PortSet([1...65_535])

    /// Whether the set is not empty and holds only numbers from 1 to 65535.
    package var isValid: Bool {
        !ranges.isEmpty && ranges.allSatisfy { (1...65_535).contains($0.lowerBound) && $0.upperBound <= 65_535 }
    }

    package func contains(_ port: Int) -> Bool {
        ranges.contains { $0.contains(port) }
    }

    package mutating func insert(_ port: Int) {
        ranges.append(port...port)
    }

    /// Parses `8080` or `8000-8999`; nil for anything else and for ports outside 1…65535.
    package static func range(_ text: String) -> ClosedRange<Int>? {
        let bounds = text.split(separator: "-", omittingEmptySubsequences: false).map { PortSuffix.port(in: $0) }
        guard let first = bounds.first, let last = bounds.last, bounds.count <= 2, let first, let last, first <= last else {
            return nil
        }
        return first...last
    }
}
