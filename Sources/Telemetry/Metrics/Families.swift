/// The metric families. Names and units follow Prometheus' conventions: base units, and `_total` for counters.
package enum Families {
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
    package static let connections = MetricFamily("gifreel_http_connections", .gauge, "Open connections.")
    package static let accepted = MetricFamily("gifreel_http_connections_accepted_total", .counter, "Connections accepted.")
    package static let refusedConnections = MetricFamily(
        "gifreel_http_connections_refused_total", .counter,
        "Connections refused, because their client had server.max_connections_per_client open.")
    package static let loadedPieces = MetricFamily(
        "gifreel_http_disk_reads_total", .counter,
        "Pieces of renditions, of up to 1 MiB, that had to be read from the disk to be sent.")
    package static let statuses = MetricFamily(
        "gifreel_async_statuses", .gauge, "Statuses of requests that did not wait, by state: running or ended.")
    package static let webhooks = MetricFamily(
        "gifreel_webhooks_total", .counter, "Attempts to send webhooks, by result.")
    package static let webhooksPending = MetricFamily(
        "gifreel_webhooks_pending", .gauge, "Webhooks that wait or are being sent.")
    package static let traceSpans = MetricFamily(
        "gifreel_trace_spans_total", .counter, "Spans of traced requests, by result: exported, failed or dropped.")
    package static let droppedLogLines = MetricFamily(
        "gifreel_log_dropped_lines_total", .counter, "Log lines that could not be written, by log.")

    // MARK: Fetches

    package static let fetches = MetricFamily("gifreel_fetches_total", .counter, "Fetches ended, by result.")
    package static let fetchDuration = MetricFamily(
        "gifreel_fetch_duration_seconds", .histogram([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]),
        "Duration of successful fetches, including 304, redirects and waiting.")
    package static let fetchedBytes = MetricFamily("gifreel_fetch_bytes_total", .counter, "Bytes received from origins.")
    package static let fetchesActive = MetricFamily("gifreel_fetches_active", .gauge, "Fetches in progress.")
    package static let fetchesWaiting = MetricFamily(
        "gifreel_fetches_waiting", .gauge, "Fetches waiting for sources.concurrency.")
    package static let redirects = MetricFamily("gifreel_fetch_redirects_total", .counter, "Redirects followed.")
    package static let fetchConnections = MetricFamily(
        "gifreel_fetch_connections_total", .counter, "Connections opened to origins.")
    package static let refusedAddresses = MetricFamily(
        "gifreel_fetch_addresses_refused_total", .counter, "Connections refused by the address policy.")

    // MARK: Conversions

    package static let conversions = MetricFamily("gifreel_conversions_total", .counter, "Conversions ended, by result.")
    package static let conversionDuration = MetricFamily(
        "gifreel_conversion_duration_seconds", .histogram([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]),
        "Duration of successful conversions in a worker.")
    package static let conversionQueue = MetricFamily(
        "gifreel_conversion_queue_seconds", .histogram([0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20]),
        "Time that successful conversions waited for a worker.")
    package static let conversionCPU = MetricFamily(
        "gifreel_conversion_cpu_seconds_total", .counter, "Processor time of successful conversions.")
    package static let sourceBytes = MetricFamily(
        "gifreel_conversion_source_bytes_total", .counter, "Bytes of converted GIFs.")
    package static let outputBytes = MetricFamily(
        "gifreel_conversion_output_bytes_total", .counter, "Bytes of the outputs of conversions.")
    package static let savedBytes = MetricFamily(
        "gifreel_saved_bytes_total", .counter, "Bytes by which outputs are smaller than their GIFs.")
    package static let kills = MetricFamily(
        "gifreel_sandbox_kills_total", .counter, "Workers that were terminated or sent an invalid reply, by cause.")
    package static let blockedSources = MetricFamily(
        "gifreel_blocked_sources_total", .counter, "Sources refused because they are on the list of block.list.")
    package static let flashingSources = MetricFamily(
        "gifreel_flashing_sources_total", .counter, "Sources found to flash more often than flashes.limit permits.")
    package static let busyWorkers = MetricFamily("gifreel_workers_busy", .gauge, "Workers running a conversion.")
    package static let workers = MetricFamily("gifreel_workers", .gauge, "Limit of concurrent workers.")
    package static let queueDepth = MetricFamily("gifreel_conversions_waiting", .gauge, "Conversions waiting for a worker.")
    package static let queueLimit = MetricFamily(
        "gifreel_conversions_waiting_limit", .gauge, "Limit of conversions waiting for a worker.")
    package static let zygoteReplacements = MetricFamily(
        "gifreel_zygote_replacements_total", .counter, "Zygote processes that died or hung and were replaced.")

    package static let prewarmed = MetricFamily(
        "gifreel_prewarm_urls_total", .counter, "Finished entries of prewarm lists, by result.")
    package static let prewarmWaiting = MetricFamily(
        "gifreel_prewarm_urls_waiting", .gauge, "Unfinished entries of prewarm lists.")

    package static let backgroundRenditions = MetricFamily(
        "gifreel_background_renditions_total", .counter,
        "Renditions produced in the background, by result.")
    package static let backgroundWaiting = MetricFamily(
        "gifreel_background_renditions_waiting", .gauge, "Queued renditions that wait.")

    // MARK: Shared store

    package static let storeRequests = MetricFamily(
        "gifreel_store_requests_total", .counter, "Requests to the shared store, by operation.")
    package static let storeSeconds = MetricFamily(
        "gifreel_store_request_seconds_total", .counter, "Time of requests to the shared store, by operation.")
    package static let storeFailures = MetricFamily(
        "gifreel_store_failures_total", .counter, "Requests to the shared store that failed, by cause.")
    package static let storeLookups = MetricFamily(
        "gifreel_store_lookups_total", .counter, "Look-ups in the shared store, by result.")
    package static let storeRetries = MetricFamily(
        "gifreel_store_retries_total", .counter, "Repeated attempts of requests to the shared store.")
    package static let storeReceived = MetricFamily(
        "gifreel_store_received_bytes_total", .counter, "Bytes of renditions received from the shared store.")
    package static let storeSent = MetricFamily(
        "gifreel_store_sent_bytes_total", .counter, "Bytes of renditions sent to the shared store.")
    package static let storeAvailable = MetricFamily(
        "gifreel_store_available", .gauge, "1 while the circuit breaker of the shared store is closed.")
    package static let storeQueued = MetricFamily("gifreel_store_queue_depth", .gauge, "Writes that wait to be sent.")
    package static let storeQueuedBytes = MetricFamily(
        "gifreel_store_queue_bytes", .gauge, "Bytes of renditions that wait to be sent.")
    package static let storeDropped = MetricFamily(
        "gifreel_store_dropped_writes_total", .counter, "Writes dropped because the queue was full or they cannot succeed.")

    // MARK: Cluster

    package static let clusterCommands = MetricFamily("gifreel_cluster_commands_total", .counter, "Commands sent to Redis.")
    package static let clusterErrors = MetricFamily(
        "gifreel_cluster_errors_total", .counter, "Errors of Redis and of its connections, by kind.")
    package static let clusterRoundTrips = MetricFamily(
        "gifreel_cluster_round_trips_total", .counter, "Round trips to Redis.")
    package static let clusterRoundTripSeconds = MetricFamily(
        "gifreel_cluster_round_trip_seconds_total", .counter, "Time of round trips to Redis.")
    package static let clusterConnections = MetricFamily(
        "gifreel_cluster_connections_total", .counter, "Connections opened to Redis.")
    package static let clusterFlights = MetricFamily(
        "gifreel_cluster_flights_total", .counter, "Misses by the part of this node: led, followed, found or alone.")
    package static let clusterLeasesLost = MetricFamily(
        "gifreel_cluster_leases_lost_total", .counter, "Leases that expired or were overtaken by a purge.")
    package static let clusterPurges = MetricFamily(
        "gifreel_cluster_purges_total", .counter, "Entries of the purge stream, added or applied.")
    package static let clusterPurgesPending = MetricFamily(
        "gifreel_cluster_purges_pending", .gauge, "Purges that wait to be added to the stream.")
    package static let clusterRevalidations = MetricFamily(
        "gifreel_cluster_revalidations_total", .counter, "Times that every alias was expired after missed purges.")
    package static let clusterShared = MetricFamily(
        "gifreel_cluster_shared", .gauge, "1 while this node takes part in the cluster.")
    package static let clusterNodes = MetricFamily("gifreel_cluster_nodes", .gauge, "Live nodes.")

    // MARK: Cache

    package static let cacheObjects = MetricFamily("gifreel_cache_objects", .gauge, "Renditions stored.")
    package static let cacheBytes = MetricFamily("gifreel_cache_bytes", .gauge, "Bytes of renditions stored.")
    package static let cacheLimit = MetricFamily(
        "gifreel_cache_limit_bytes", .gauge, "Limit of the bytes of stored renditions.")
    package static let cacheHits = MetricFamily(
        "gifreel_cache_hits_total", .counter, "Look-ups that found a rendition, by tier.")
    package static let cacheMisses = MetricFamily("gifreel_cache_misses_total", .counter, "Look-ups that found nothing.")
    package static let published = MetricFamily("gifreel_cache_published_total", .counter, "Renditions stored since the start.")
    package static let unstored = MetricFamily(
        "gifreel_cache_unstored_total", .counter, "Renditions that were produced but not stored.")
    package static let evictions = MetricFamily("gifreel_cache_evictions_total", .counter, "Evicted renditions.")
    package static let evictedBytes = MetricFamily(
        "gifreel_cache_evicted_bytes_total", .counter, "Bytes of evicted renditions.")
    package static let purges = MetricFamily("gifreel_cache_purges_total", .counter, "Purges.")
    package static let purged = MetricFamily("gifreel_cache_purged_total", .counter, "Renditions removed by purges.")
    package static let corrupt = MetricFamily(
        "gifreel_cache_corrupt_total", .counter, "Stored files that did not match their record and were removed.")
    package static let orphans = MetricFamily(
        "gifreel_cache_orphans_total", .counter, "Files without a row in the database that were removed.")
    package static let cacheFiles = MetricFamily(
        "gifreel_cache_disk_files", .gauge, "Files that the file system of the cache can hold; missing if it has no limit.")
    package static let cacheFreeFiles = MetricFamily(
        "gifreel_cache_disk_free_files", .gauge, "Files that the file system of the cache can still take.")
    package static let cacheFreeBytes = MetricFamily(
        "gifreel_cache_disk_free_bytes", .gauge, "Free bytes of the file system of the cache.")
    package static let cacheMinFreeBytes = MetricFamily(
        "gifreel_cache_disk_min_free_bytes", .gauge,
        "The setting cache.min_free_bytes: below it, renditions are evicted and new ones are not stored.")
    package static let storing = MetricFamily("gifreel_cache_storing", .gauge, "1 while new renditions can be stored, else 0.")

    // MARK: The process

    package static let build = MetricFamily(
        "gifreel_build_info", .gauge, "Always 1. The labels are the version and the revision of the source.")
    package static let outdatedLibrary = MetricFamily(
        "gifreel_outdated_library", .gauge,
        "1 for each statically linked library that is older than the installed package of the same source.")
    package static let ready = MetricFamily("gifreel_ready", .gauge, "1 while /readyz reports 200, else 0.")
    package static let processCPU = MetricFamily(
        "process_cpu_seconds_total", .counter, "Processor time of the server without its workers.")
    package static let resident = MetricFamily("process_resident_memory_bytes", .gauge, "Resident memory of the server.")
    package static let virtual = MetricFamily("process_virtual_memory_bytes", .gauge, "Virtual memory of the server.")
    package static let openDescriptors = MetricFamily("process_open_fds", .gauge, "Open file descriptors.")
    package static let maxDescriptors = MetricFamily("process_max_fds", .gauge, "Limit of open file descriptors.")
    package static let started = MetricFamily(
        "process_start_time_seconds", .gauge, "Start time of the server in seconds since 1970.")

    /// The families recorded through instruments of swift-metrics. The others are read from the parts that count them.
    package static let instruments = [
        requests, requestDuration, responseBytes, requestBytes, cutResponses, unobserved, fetches, fetchDuration,
        conversions, conversionDuration, conversionQueue, conversionCPU, sourceBytes, outputBytes, savedBytes, kills,
        blockedSources, flashingSources,
        prewarmed, keyRequests, keyMisses, keyRefusals, purgeHooks, webhooks, traceSpans,
    ]
}
