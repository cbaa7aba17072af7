/// The text formats of metrics.
package enum ExpositionFormat: Sendable {
    /// Prometheus text, version 0.0.4.
    case prometheus
    /// OpenMetrics 1.0.0.
    case openMetrics

    /// The media type with its parameters.
    package var contentType: String {
        switch self {
        case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
        case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
        }
    }
}

struct ExpositionFamily {
    var family: MetricFamily
    var series: [MetricLabels: SeriesValue]
}

/// A writer of families in one of the text formats.
///
/// Sources: “Exposition formats” in the documentation of Prometheus, and OpenMetrics 1.0.0.
struct ExpositionWriter {
    private let format: ExpositionFormat
    private var text = ""

    init(_ format: ExpositionFormat) {
        self.format = format
    }

    mutating func write(_ entry: ExpositionFamily) {
        let family = entry.family
        let name = format == .openMetrics ? String(family.openMetricsName) : family.name
        text += "# HELP \(name) \(family.help.replacing("\\", with: "\\\\"))\n# TYPE \(name) \(family.typeName)\n"
        if format == .openMetrics, let unit = family.unit { text += "# UNIT \(name) \(unit)\n" }
        for (labels, value) in entry.series.sorted(by: { $0.key < $1.key }) {
            switch value {
            case .number(let number): line(family.name, labels.text, Self.text(number))
            case .histogram(let counts, let sum): histogram(family, labels, counts, sum)
            }
        }
    }

    mutating func finish() -> String {
        if format == .openMetrics { text += "# EOF\n" }
        return text
    }

    private mutating func histogram(_ family: MetricFamily, _ labels: MetricLabels, _ counts: [UInt64], _ sum: Double) {
        guard case .histogram(let bounds) = family.kind else { return }
        var total: UInt64 = 0
        for (index, count) in counts.enumerated() {
            total += count
            let bound = index < bounds.count ? "\(bounds[index])" : "+Inf"
            line(family.name + "_bucket", labels.adding("le", bound), String(total))
        }
        line(family.name + "_sum", labels.text, Self.text(sum))
        line(family.name + "_count", labels.text, String(total))
    }

    private mutating func line(_ name: String, _ labels: String, _ value: String) {
        text += labels.isEmpty ? "\(name) \(value)\n" : "\(name){\(labels)} \(value)\n"
    }

    /// Returns a number in the syntax of Go's `ParseFloat`, which Prometheus uses. Whole numbers have no fraction.
    private static func text(_ number: Double) -> String {
        if let whole = Int64(exactly: number) { return String(whole) }
        if number.isNaN { return "NaN" }
        return number.isInfinite ? (number < 0 ? "-Inf" : "+Inf") : "\(number)"
    }
}
