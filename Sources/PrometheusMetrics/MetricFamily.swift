/// A metric: its name, type, help text, and the buckets of a histogram.
package struct MetricFamily: Sendable, Equatable {
    /// The type of a metric.
    package enum Kind: Sendable, Equatable {
        /// Never decreases. Its name ends in `_total`.
        case counter
        /// Increases and decreases.
        case gauge
        /// Counts observations by size. The upper bounds of the buckets ascend; the infinite one is left out.
        case histogram([Double])
    }

    /// Letters, digits and `_`, with the unit at the end (`_seconds`, `_bytes`), as Prometheus recommends.
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

    /// The unit for OpenMetrics: the last word of the name if it is a base unit.
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
