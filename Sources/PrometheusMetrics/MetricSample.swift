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
}
