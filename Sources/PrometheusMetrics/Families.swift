/// Everything that is measured. Names and units follow Prometheus' conventions: base units, `_total` for what only grows.
package enum Families {
    // MARK: Requests

    package static let requests = MetricFamily(
        "gifreel_http_requests_total", .counter, "Requests answered, by route, status and use of the cache.")
    package static let requestDuration = MetricFamily(
        "gifreel_http_request_duration_seconds",
        .histogram([0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]),
        "Time from a request's complete head to the last byte of its answer.")
    package static let responseBytes = MetricFamily(
        "gifreel_http_response_body_bytes_total", .counter, "Bytes of answers' bodies sent, by route.")
    package static let requestBytes = MetricFamily(
        "gifreel_http_request_body_bytes_total", .counter, "Bytes of GIFs received in requests.")
    package static let cutResponses = MetricFamily(
        "gifreel_http_responses_cut_total", .counter, "Answers that a client did not take to their end.")
    package static let unobserved = MetricFamily(
        "gifreel_http_requests_unobserved_total", .counter,
        "Requests that other families lack, because they came faster than they could be counted.")
    package static let connections = MetricFamily("gifreel_http_connections", .gauge, "Connections open.")
    package static let accepted = MetricFamily("gifreel_http_connections_accepted_total", .counter, "Connections accepted.")
    package static let droppedLogLines = MetricFamily(
        "gifreel_log_dropped_lines_total", .counter, "Log lines that could not be written, by log.")

    // MARK: Fetches

    package static let fetches = MetricFamily("gifreel_fetches_total", .counter, "Fetches ended, by result.")
    package static let fetchDuration = MetricFamily(
        "gifreel_fetch_duration_seconds", .histogram([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]),
        "Time of fetches that brought a source or learnt that it had not changed, redirects and waiting included.")
    package static let fetchedBytes = MetricFamily("gifreel_fetch_bytes_total", .counter, "Bytes received from origins.")
    package static let fetchesActive = MetricFamily("gifreel_fetches_active", .gauge, "Fetches under way.")
    package static let fetchesWaiting = MetricFamily("gifreel_fetches_waiting", .gauge, "Fetches that wait for a place.")
    package static let redirects = MetricFamily("gifreel_fetch_redirects_total", .counter, "Redirects followed.")
    package static let fetchConnections = MetricFamily(
        "gifreel_fetch_connections_total", .counter, "Connections opened to origins.")
    package static let refusedAddresses = MetricFamily(
        "gifreel_fetch_addresses_refused_total", .counter, "Connections not made because of their address or port.")

    // MARK: Conversions

    package static let conversions = MetricFamily("gifreel_conversions_total", .counter, "Conversions ended, by result.")
    package static let conversionDuration = MetricFamily(
        "gifreel_conversion_duration_seconds", .histogram([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]),
        "Time a worker took for a conversion that succeeded.")
    package static let conversionQueue = MetricFamily(
        "gifreel_conversion_queue_seconds", .histogram([0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20]),
        "Time a conversion that succeeded had waited for a worker.")
    package static let conversionCPU = MetricFamily(
        "gifreel_conversion_cpu_seconds_total", .counter, "Processor time of conversions that succeeded.")
    package static let sourceBytes = MetricFamily(
        "gifreel_conversion_source_bytes_total", .counter, "Bytes of the GIFs that conversions were made of.")
    package static let outputBytes = MetricFamily(
        "gifreel_conversion_output_bytes_total", .counter, "Bytes of what conversions made.")
    package static let savedBytes = MetricFamily(
        "gifreel_saved_bytes_total", .counter, "Bytes by which what was made is smaller than its GIF.")
    package static let kills = MetricFamily(
        "gifreel_sandbox_kills_total", .counter, "Workers that did not end by themselves, by cause.")
    package static let busyWorkers = MetricFamily("gifreel_workers_busy", .gauge, "Workers that convert.")
    package static let workers = MetricFamily("gifreel_workers", .gauge, "Workers there may be at once.")
    package static let queueDepth = MetricFamily("gifreel_conversions_waiting", .gauge, "Conversions that wait for a worker.")
    package static let queueLimit = MetricFamily(
        "gifreel_conversions_waiting_limit", .gauge, "Conversions that may wait for a worker.")
    package static let zygoteReplacements = MetricFamily(
        "gifreel_zygote_replacements_total", .counter, "Zygote processes that died or hung and were replaced.")

    package static let prewarmed = MetricFamily(
        "gifreel_prewarm_urls_total", .counter, "Renditions of prewarm lists that are done with, by result.")
    package static let prewarmWaiting = MetricFamily(
        "gifreel_prewarm_urls_waiting", .gauge, "Renditions of prewarm lists that are yet to be done.")

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
    package static let cacheLimit = MetricFamily("gifreel_cache_limit_bytes", .gauge, "Bytes of renditions that may be stored.")
    package static let cacheHits = MetricFamily("gifreel_cache_hits_total", .counter, "Look-ups answered, by where from.")
    package static let cacheMisses = MetricFamily("gifreel_cache_misses_total", .counter, "Look-ups that found nothing.")
    package static let published = MetricFamily("gifreel_cache_published_total", .counter, "Renditions stored since the start.")
    package static let unstored = MetricFamily(
        "gifreel_cache_unstored_total", .counter, "Renditions made but not stored: purged meanwhile, or no room.")
    package static let evictions = MetricFamily("gifreel_cache_evictions_total", .counter, "Renditions removed to make room.")
    package static let evictedBytes = MetricFamily(
        "gifreel_cache_evicted_bytes_total", .counter, "Bytes of renditions removed to make room.")
    package static let purges = MetricFamily("gifreel_cache_purges_total", .counter, "Purges done.")
    package static let purged = MetricFamily("gifreel_cache_purged_total", .counter, "Renditions removed by purges.")
    package static let corrupt = MetricFamily(
        "gifreel_cache_corrupt_total", .counter, "Stored files that did not match their record and were removed.")
    package static let storing = MetricFamily("gifreel_cache_storing", .gauge, "1 while the disk takes new renditions, else 0.")

    // MARK: The process

    package static let build = MetricFamily("gifreel_build_info", .gauge, "Always 1; the labels tell the version.")
    package static let ready = MetricFamily("gifreel_ready", .gauge, "1 while requests are welcome, else 0.")
    package static let processCPU = MetricFamily(
        "process_cpu_seconds_total", .counter, "Processor time of the server itself, conversions not included.")
    package static let resident = MetricFamily("process_resident_memory_bytes", .gauge, "Resident memory of the server.")
    package static let virtual = MetricFamily("process_virtual_memory_bytes", .gauge, "Virtual memory of the server.")
    package static let openDescriptors = MetricFamily("process_open_fds", .gauge, "File descriptors open.")
    package static let maxDescriptors = MetricFamily("process_max_fds", .gauge, "File descriptors that may be open.")
    package static let started = MetricFamily(
        "process_start_time_seconds", .gauge, "When the server started, in seconds since 1970.")

    /// Those behind instruments of swift-metrics; the others are read where they are kept.
    package static let instruments = [
        requests, requestDuration, responseBytes, requestBytes, cutResponses, unobserved, fetches, fetchDuration,
        conversions, conversionDuration, conversionQueue, conversionCPU, sourceBytes, outputBytes, savedBytes, kills,
        prewarmed,
    ]
}
