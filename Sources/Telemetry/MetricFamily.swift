/// A metric: its name, type, help text, and the buckets of a histogram.
package struct MetricFamily: Sendable, Equatable {
    /// The type of a metric.
    package enum Kind: Sendable, Equatable {
        /// Never decreases. Its name ends in `_total`.
        case counter
        /// Increases and decreases.
        case gauge
        /// Counts observations by size. The upper bounds of the buckets ascend and exclude infinity.
        case histogram([Double])
    }

    /// Letters, digits and `_`, with the unit at the end (`_seconds`, `_bytes`), as Prometheus recommends.
    package let name: String
    package let kind: Kind
    /// The help text: one sentence.
    package let help: String

    package init(_ name: String, _ kind: Kind, _ help: String) {
        self.name = name
        self.kind = kind
        self.help = help
    }

    /// The family's name in OpenMetrics, where a counter's samples end in `_total` but its family does not.
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

/// A value that its owner counts and that is read when metrics are collected.
package struct MetricSample: Sendable {
    let family: MetricFamily
    let labels: MetricLabels
    let value: Double

    /// - Parameters:
    ///   - family: A counter or a gauge.
    ///   - labels: Names and values that identify the series within the family.
    package init(_ family: MetricFamily, _ value: Double, _ labels: [(String, String)] = []) {
        self.family = family
        self.labels = MetricLabels(labels)
        self.value = value
    }

    package init(_ family: MetricFamily, _ value: some BinaryInteger, _ labels: [(String, String)] = []) {
        self.init(family, Double(value), labels)
    }

    /// Returns a sample of a counter that is declared where it is read.
    package static func counter(
        _ name: String, _ value: some BinaryInteger, _ help: String, _ labels: [(String, String)] = []
    ) -> MetricSample {
        MetricSample(MetricFamily(name, .counter, help), value, labels)
    }

    /// Returns a sample of a fractional counter, such as seconds, that is declared where it is read.
    package static func counter(
        _ name: String, _ value: Double, _ help: String, _ labels: [(String, String)] = []
    ) -> MetricSample {
        MetricSample(MetricFamily(name, .counter, help), value, labels)
    }

    /// Returns a sample of a gauge that is declared where it is read.
    package static func gauge(
        _ name: String, _ value: some BinaryInteger, _ help: String, _ labels: [(String, String)] = []
    ) -> MetricSample {
        MetricSample(MetricFamily(name, .gauge, help), value, labels)
    }
}

/// The labels of one series as the text between the braces: `route="mp4",status="200"`.
struct MetricLabels: Sendable, Hashable, Comparable {
    let text: String

    init(_ pairs: [(String, String)]) {
        text = pairs.map { "\($0)=\"\(Self.escaped($1))\"" }.joined(separator: ",")
    }

    /// Returns the labels with another label, such as a bucket's `le`.
    func adding(_ name: String, _ value: String) -> String {
        text.isEmpty ? "\(name)=\"\(value)\"" : "\(text),\(name)=\"\(value)\""
    }

    /// Escapes backslashes, quotes and line ends, as both formats require.
    private static func escaped(_ value: String) -> String {
        guard value.contains(where: { $0 == "\\" || $0 == "\"" || $0.isNewline }) else { return value }
        return value.reduce(into: "") { text, character in
            switch character {
            case "\\": text += "\\\\"
            case "\"": text += "\\\""
            case _ where character.isNewline: text += "\\n"
            default: text.append(character)
            }
        }
    }

    static func < (left: MetricLabels, right: MetricLabels) -> Bool { left.text < right.text }
}
