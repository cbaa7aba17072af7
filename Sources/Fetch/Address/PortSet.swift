/// A set of TCP ports, given as single ports and ranges.
package struct PortSet: Hashable, Sendable, ExpressibleByArrayLiteral {
    package var ranges: [ClosedRange<Int>]

    package init(_ ranges: [ClosedRange<Int>]) {
        self.ranges = ranges
    }

    package init(arrayLiteral ports: Int...) {
        ranges = ports.map { $0...$0 }
    }

    package func contains(_ port: Int) -> Bool {
        ranges.contains { $0.contains(port) }
    }
}

extension PortSet: CustomStringConvertible {
    /// The ports and ranges in the order of the setting, such as `80, 8000–8080`.
    package var description: String {
        ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)–\($0.upperBound)" }.joined(separator: ", ")
    }
}
