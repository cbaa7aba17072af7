/// What is measured under one name: its type, its help text, and for histograms the buckets.
package struct MetricFamily: Sendable, Equatable {
    /// How values come together.
    package enum Kind: Sendable, Equatable {
        /// Only ever grows; its name ends in `_total`.
        case counter
        /// Goes up and down.
        case gauge
        /// Counts observations by size; the upper bounds of its buckets, ascending, without the last, which is infinite.
        case histogram([Double])
    }

    /// As Prometheus has it: letters, digits and `_`, with the unit at its end (`_seconds`, `_bytes`).
    package let name: String
    package let kind: Kind
    /// One sentence.
    package let help: String

    package init(_ name: String, _ kind: Kind, _ help: String) {
        self.name = name
        self.kind = kind
        self.help = help
    }

    /// The family's name in OpenMetrics, in which only a counter's samples end in `_total`.
    var openMetricsName: Substring {
        kind == .counter && name.hasSuffix("_total") ? name.dropLast("_total".count) : name[...]
    }

    /// The unit OpenMetrics is told: the name's last word where it is a base unit.
    var unit: String? {
        ["seconds", "bytes"].first { openMetricsName.hasSuffix("_" + $0) }
    }

    /// The word after `# TYPE`.
    var typeName: String {
        switch kind {
        case .counter: "counter"
        case .gauge: "gauge"
        case .histogram: "histogram"
        }
    }
}
