internal import Fetch
internal import Fleet
internal import HTTP
internal import Prewarm
internal import Renditions
internal import Sandbox
internal import Store
internal import SystemIO
internal import Telemetry
internal import Web

/// Reads the counters that the parts of the service keep themselves, whenever the metrics are collected.
struct ServiceMetrics: Sendable {
    let outdatedPackages: [OutdatedPackage]
    let core: RenditionCore
    let server: HTTPServer
    let web: WebHandler.Dependencies
    let isReady: @Sendable () -> Bool

    func samples() -> [MetricSample] {
        cacheSamples() + fetchSamples() + poolSamples() + serverSamples() + storeSamples() + clusterSamples()
    }

    private func cacheSamples() -> [MetricSample] {
        let now = core.cache.statistics()
        let hits = MetricFamily("gifreel_cache_hits_total", .counter, "Lookups that found a rendition, by tier.")
        let space = core.cache.space()
        var samples: [MetricSample] = []
        if let space, let free = space.disk.freeFiles {
            samples += [
                .gauge(
                    "gifreel_cache_disk_files", space.disk.allFiles,
                    "Files that the file system of the cache can hold; missing if it has no limit."),
                .gauge("gifreel_cache_disk_free_files", free, "Files that the file system of the cache can still take."),
            ]
        }
        if let space {
            samples += [
                .gauge("gifreel_cache_disk_free_bytes", space.disk.freeBytes, "Free bytes of the file system of the cache."),
                .gauge(
                    "gifreel_cache_disk_min_free_bytes", space.minFreeBytes,
                    "The setting cache.min_free_bytes: below it, renditions are evicted and new ones are not stored."),
            ]
        }
        return samples + [
            .counter("gifreel_cache_orphans_total", now.orphans, "Files without a row in the database that were removed."),
            .gauge("gifreel_cache_objects", now.objects, "Renditions stored."),
            .gauge("gifreel_cache_bytes", now.bytes, "Bytes of renditions stored."),
            .gauge(
                "gifreel_cache_used_bytes", now.diskBytes,
                "Bytes of the disk that count against the limit: files and rows of renditions and of their URLs."),
            .gauge(
                "gifreel_cache_limit_bytes", now.limitBytes,
                "The setting cache.max_bytes: renditions are evicted once 95 % of it are used."),
            MetricSample(hits, now.hotHits, [("tier", "memory")]),
            MetricSample(hits, now.diskHits, [("tier", "disk")]),
            .counter("gifreel_cache_misses_total", now.misses, "Lookups that found nothing."),
            .counter("gifreel_cache_published_total", now.published, "Renditions stored since the start."),
            .counter("gifreel_cache_unstored_total", now.unstored, "Renditions that were produced but not stored."),
            .counter("gifreel_cache_evictions_total", now.evictions, "Evicted renditions."),
            .counter("gifreel_cache_evicted_bytes_total", now.evictedBytes, "Bytes of evicted renditions."),
            .counter("gifreel_cache_purges_total", now.purges, "Purges, and removals of sources that are gone."),
            .counter(
                "gifreel_cache_purged_total", now.purged,
                "Renditions removed by purges and with sources that are gone, each as often as URLs led to it."),
            .counter(
                "gifreel_cache_corrupt_total", now.corrupt, "Stored files that did not match their record and were removed."),
            .gauge(
                "gifreel_cache_storing", now.isStoring && space?.refusal == nil ? 1 : 0,
                "1 while new renditions can be stored, else 0."),
        ]
    }

    private func fetchSamples() -> [MetricSample] {
        let now = core.fetcher.counters()
        return [
            .counter("gifreel_fetch_bytes_total", now.bytes, "Bytes received from origins."),
            .gauge("gifreel_fetches_active", now.active, "Fetches in progress."),
            .gauge("gifreel_fetches_waiting", now.waiting, "Fetches waiting for sources.concurrency."),
            .counter("gifreel_fetch_redirects_total", now.redirects, "Redirects followed."),
            .counter("gifreel_fetch_connections_total", now.connections, "Connections opened to origins."),
            .counter(
                "gifreel_fetch_addresses_refused_total", now.refusedAddresses, "Connections refused by the address policy."),
        ]
    }

    private func poolSamples() -> [MetricSample] {
        let (load, statistics) = (core.pool.load, core.pool.statistics)
        return [
            .gauge("gifreel_workers_busy", load.running, "Workers running a conversion."),
            .gauge("gifreel_workers", core.pool.configuration.workers, "Limit of concurrent workers."),
            .gauge("gifreel_conversions_waiting", load.waiting, "Conversions waiting for a worker."),
            .gauge(
                "gifreel_conversions_waiting_limit", core.pool.configuration.queue, "Limit of conversions waiting for a worker."
            ),
            .counter(
                "gifreel_conversion_cpu_seconds_total", Double(statistics.cpuMicroseconds) / 1e6,
                "Processor time of workers, also of those whose conversion failed or was cancelled."),
            .counter(
                "gifreel_zygote_replacements_total", statistics.replacedZygotes,
                "Zygote processes that died or hung and were replaced."),
            .gauge("gifreel_prewarm_urls_waiting", web.prewarm.waiting, "Unfinished entries of prewarm lists."),
            .gauge("gifreel_background_renditions_waiting", web.background.waiting, "Queued renditions that wait."),
        ]
    }

    private func storeSamples() -> [MetricSample] {
        guard let store = core.store else { return [] }
        let now = store.statistics
        // Shows in the next samples. Otherwise an idle node would report the outage until its next miss.
        if now.breaker == .halfOpen { Task { await store.probeIfDue() } }
        let lookups = MetricFamily("gifreel_store_lookups_total", .counter, "Lookups in the shared store, by result.")
        var samples: [MetricSample] = [
            MetricSample(lookups, now.hits, [("result", "hit")]),
            MetricSample(lookups, now.misses, [("result", "miss")]),
            .counter("gifreel_store_retries_total", now.retries, "Repeated attempts of requests to the shared store."),
            .counter(
                "gifreel_store_received_bytes_total", now.bytesReceived, "Bytes of renditions received from the shared store."),
            .counter("gifreel_store_sent_bytes_total", now.bytesSent, "Bytes of renditions sent to the shared store."),
            .gauge(
                "gifreel_store_available", now.breaker == .closed ? 1 : 0,
                "1 while the circuit breaker of the shared store is closed."),
            .gauge("gifreel_store_queue_depth", now.queuedWrites, "Writes that wait to be sent."),
            .gauge("gifreel_store_queue_bytes", now.queuedBytes, "Bytes of renditions that wait to be sent."),
            .counter(
                "gifreel_store_dropped_writes_total", now.droppedWrites,
                "Writes dropped because the queue was full or they cannot succeed."),
        ]
        for (operation, calls) in now.calls {
            let labels = [("operation", operation.rawValue)]
            samples += [
                .counter(
                    "gifreel_store_requests_total", calls.count,
                    "Operations on the shared store, by kind. Each takes one HTTP request or several.", labels),
                .counter(
                    "gifreel_store_request_seconds_total", calls.time / .seconds(1),
                    "Time of operations on the shared store, by kind.", labels),
            ]
        }
        let failures = MetricFamily(
            "gifreel_store_failures_total", .counter,
            "Operations on the shared store that failed, by cause. Those that were suspended were not sent.")
        return samples + now.failures.map { MetricSample(failures, $1, [("cause", $0)]) }
    }

    private func clusterSamples() -> [MetricSample] {
        guard let cluster = core.cluster else { return [] }
        let now = cluster.metrics
        let flights = MetricFamily(
            "gifreel_cluster_flights_total", .counter, "Misses by the part of this node: led, followed, found or alone.")
        let purges = MetricFamily("gifreel_cluster_purges_total", .counter, "Entries of the purge stream, added or applied.")
        let errors = MetricFamily(
            "gifreel_cluster_errors_total", .counter, "Errors of Redis and of its connections, by kind.")
        let samples: [MetricSample] = [
            .counter("gifreel_cluster_commands_total", now.commands, "Commands sent to Redis."),
            .counter("gifreel_cluster_round_trips_total", now.roundTrips, "Round trips to Redis."),
            .counter(
                "gifreel_cluster_round_trip_seconds_total", now.roundTripTime / .seconds(1), "Time of round trips to Redis."),
            .counter("gifreel_cluster_connections_total", now.connections, "Connections opened to Redis."),
            MetricSample(flights, now.leasesTaken, [("part", "led")]),
            MetricSample(flights, now.flightsFollowed, [("part", "followed")]),
            MetricSample(flights, now.recordsFound, [("part", "found")]),
            MetricSample(flights, now.flightsAlone, [("part", "alone")]),
            .counter("gifreel_cluster_leases_lost_total", now.leasesLost, "Leases that expired or were overtaken by a purge."),
            MetricSample(purges, now.purgesAdded, [("direction", "added")]),
            MetricSample(purges, now.purgesApplied, [("direction", "applied")]),
            .gauge("gifreel_cluster_purges_pending", now.purgesPending, "Purges that wait to be added to the stream."),
            .counter(
                "gifreel_cluster_revalidations_total", now.revalidations,
                "Times that every alias was expired after missed purges."),
            .gauge("gifreel_cluster_shared", cluster.isSharing ? 1 : 0, "1 while this node takes part in the cluster."),
            .gauge("gifreel_cluster_nodes", cluster.nodeCount, "Live nodes."),
        ]
        return samples + now.errors.map { MetricSample(errors, $1, [("kind", $0)]) }
    }

    private func serverSamples() -> [MetricSample] {
        let now = server.counters
        let statuses = web.statuses.counts
        let statusFamily = MetricFamily(
            "gifreel_async_statuses", .gauge, "Statuses of requests that did not wait, by state: running or ended.")
        return [
            .gauge("gifreel_http_connections", now.openConnections, "Open connections."),
            .counter("gifreel_http_connections_accepted_total", now.acceptedConnections, "Connections accepted."),
            .counter(
                "gifreel_http_connections_refused_total", now.refusedConnections,
                "Connections refused, because their client had server.max_connections_per_client open."),
            .counter(
                "gifreel_http_disk_reads_total", now.loadedPieces,
                "Pieces of renditions, of up to 1 MiB, that had to be read from the disk to be sent."),
            MetricSample(statusFamily, statuses.kept - statuses.running, [("state", "ended")]),
            .gauge("gifreel_webhooks_pending", web.webhooks.pending, "Webhooks that wait or are being sent."),
            MetricSample(statusFamily, statuses.running, [("state", "running")]),
            .gauge("gifreel_ready", isReady() ? 1 : 0, "1 while /readyz reports 200, else 0."),
            .gauge(
                "gifreel_build_info", 1, "Always 1. The labels are the version and the revision of the source.",
                [("version", Gifreel.version), ("revision", Gifreel.revision)]),
        ]
            + outdatedPackages.map { package in
                .gauge(
                    "gifreel_outdated_library", 1,
                    "1 for each statically linked library that is older than the installed package of the same source.",
                    [("library", package.name), ("linked", package.linked), ("installed", package.installed)])
            }
    }
}
