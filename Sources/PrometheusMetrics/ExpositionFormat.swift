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

    /// Selects the format by the qualities in `Accept` (RFC 9110 section 12.5.1): OpenMetrics only if the client names it with
    /// at least the quality of plain text.
    package static func preferred(accept: String?) -> ExpositionFormat {
        var (openMetrics, plain) = (0.0, 0.0)
        for item in (accept ?? "").split(separator: ",") {
            let parts = item.split(separator: ";").map { String($0.filter { $0 != " " && $0 != "\t" }).lowercased() }
            guard let type = parts.first else { continue }
            let quality = parts.first { $0.hasPrefix("q=") }.flatMap { Double($0.dropFirst(2)) } ?? 1
            switch type {
            case "application/openmetrics-text": openMetrics = max(openMetrics, quality)
            case "text/plain", "text/*", "*/*": plain = max(plain, quality)
            default: break
            }
        }
        return openMetrics > 0 && openMetrics >= plain ? .openMetrics : .prometheus
    }
}
