/// Metric families used in several places. Names and units follow Prometheus conventions: base units, and `_total` for
/// counters.
extension MetricFamily {
    // MARK: Requests

    package static let requests = MetricFamily(
        "gifreel_http_requests_total", .counter, "Requests answered, by route, status and use of the cache.")
    package static let requestDuration = MetricFamily(
        "gifreel_http_request_duration_seconds",
        .histogram([0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]),
        "Time from the complete head of a request to the last byte of its response.")
    package static let responseBytes = MetricFamily(
        "gifreel_http_response_body_bytes_total", .counter, "Bytes of response bodies sent, by route.")
    package static let requestBytes = MetricFamily(
        "gifreel_http_request_body_bytes_total", .counter, "Bytes of uploaded GIFs.")
    package static let cutResponses = MetricFamily(
        "gifreel_http_responses_cut_total", .counter, "Responses that were not sent completely.")
    package static let unobserved = MetricFamily(
        "gifreel_http_requests_unobserved_total", .counter,
        "Requests missing from the other families, because they arrived faster than they could be counted.")
    package static let purgeHooks = MetricFamily(
        "gifreel_purge_hook_requests_total", .counter,
        "Requests of purge hooks by hook and result: delivered, repeated, failed or dropped.")
    package static let keyRequests = MetricFamily(
        "gifreel_key_requests_total", .counter, "Requests that a key with a name has signed, by key.")
    package static let keyMisses = MetricFamily(
        "gifreel_key_misses_total", .counter, "Misses of requests that a key with a name has signed, by key.")
    package static let keyRefusals = MetricFamily(
        "gifreel_key_refusals_total", .counter, "Requests refused for the sources or the rate of their key, by key.")
    package static let webhooks = MetricFamily(
        "gifreel_webhooks_total", .counter, "Attempts to send webhooks, by result.")
    package static let traceSpans = MetricFamily(
        "gifreel_trace_spans_total", .counter, "Spans of traced requests, by result: exported, failed or dropped.")

    // MARK: Fetches

    package static let fetches = MetricFamily("gifreel_fetches_total", .counter, "Fetches ended, by result.")
    package static let fetchDuration = MetricFamily(
        "gifreel_fetch_duration_seconds", .histogram([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]),
        "Duration of successful fetches, including 304, redirects and waiting.")

    // MARK: Conversions

    package static let conversions = MetricFamily("gifreel_conversions_total", .counter, "Conversions ended, by result.")
    package static let conversionDuration = MetricFamily(
        "gifreel_conversion_duration_seconds", .histogram([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]),
        "Duration of successful conversions in a worker.")
    package static let conversionQueue = MetricFamily(
        "gifreel_conversion_queue_seconds", .histogram([0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20]),
        "Time that successful conversions waited for a worker.")
    package static let sourceBytes = MetricFamily(
        "gifreel_conversion_source_bytes_total", .counter, "Bytes of GIFs converted to animations, not to posters or facts.")
    package static let outputBytes = MetricFamily(
        "gifreel_conversion_output_bytes_total", .counter, "Bytes of the animations made from GIFs.")
    package static let savedBytes = MetricFamily(
        "gifreel_saved_bytes_total", .counter, "Bytes by which animations are smaller than the GIFs they were made from.")
    package static let kills = MetricFamily(
        "gifreel_sandbox_kills_total", .counter, "Workers that were terminated or sent an invalid reply, by cause.")
    package static let blockedSources = MetricFamily(
        "gifreel_blocked_sources_total", .counter, "Sources refused because they are on the list of block.list.")
    package static let flashingSources = MetricFamily(
        "gifreel_flashing_sources_total", .counter, "Sources found to flash more often than flashes.limit permits.")
    package static let prewarmed = MetricFamily(
        "gifreel_prewarm_urls_total", .counter, "Finished entries of prewarm lists, by result.")
    package static let backgroundRenditions = MetricFamily(
        "gifreel_background_renditions_total", .counter, "Renditions produced in the background, by result.")

    /// The families recorded through instruments of swift-metrics. Other families are read from the components that count them.
    package static let instruments = [
        requests, requestDuration, responseBytes, requestBytes, cutResponses, unobserved, fetches, fetchDuration,
        conversions, conversionDuration, conversionQueue, sourceBytes, outputBytes, savedBytes, kills,
        blockedSources, flashingSources, prewarmed, backgroundRenditions, keyRequests, keyMisses, keyRefusals, purgeHooks,
        webhooks, traceSpans,
    ]
}
