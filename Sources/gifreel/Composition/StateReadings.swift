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
struct StateReadings: Sendable {
    let outdatedPackages: [OutdatedPackage]
    let core: RenditionCore
    let server: HTTPServer
    let prewarm: PrewarmQueue
    let background: BackgroundRenditions
    let statuses: StatusRegistry
    let webhooks: Webhooks
    let isReady: @Sendable () -> Bool

    func samples() -> [MetricSample] {
        cacheSamples() + fetchSamples() + poolSamples() + serverSamples() + storeSamples() + clusterSamples()
    }

    private func cacheSamples() -> [MetricSample] {
        let now = core.cache.statistics()
        let space = core.cache.space()
        let files = space?.files.map { files in
            [MetricSample(Families.cacheFiles, files.all), MetricSample(Families.cacheFreeFiles, files.free)]
        }
        let bytes = space.map { space in
            [
                MetricSample(Families.cacheFreeBytes, space.freeBytes),
                MetricSample(Families.cacheMinFreeBytes, space.minFreeBytes),
            ]
        }
        return (files ?? []) + (bytes ?? []) + [
            MetricSample(Families.orphans, now.orphans),
            MetricSample(Families.cacheObjects, now.objects),
            MetricSample(Families.cacheBytes, now.bytes),
            MetricSample(Families.cacheLimit, now.limitBytes),
            MetricSample(Families.cacheHits, now.hotHits, [("tier", "memory")]),
            MetricSample(Families.cacheHits, now.diskHits, [("tier", "disk")]),
            MetricSample(Families.cacheMisses, now.misses),
            MetricSample(Families.published, now.published),
            MetricSample(Families.unstored, now.unstored),
            MetricSample(Families.evictions, now.evictions),
            MetricSample(Families.evictedBytes, now.evictedBytes),
            MetricSample(Families.purges, now.purges),
            MetricSample(Families.purged, now.purged),
            MetricSample(Families.corrupt, now.corrupt),
            MetricSample(Families.storing, now.isStoring && space?.refusal == nil ? 1 : 0),
        ]
    }

    private func fetchSamples() -> [MetricSample] {
        let now = core.fetcher.counters()
        return [
            MetricSample(Families.fetchedBytes, now.bytes),
            MetricSample(Families.fetchesActive, now.active),
            MetricSample(Families.fetchesWaiting, now.waiting),
            MetricSample(Families.redirects, now.redirects),
            MetricSample(Families.fetchConnections, now.connections),
            MetricSample(Families.refusedAddresses, now.refusedAddresses),
        ]
    }

    private func poolSamples() -> [MetricSample] {
        let load = core.pool.load
        return [
            MetricSample(Families.busyWorkers, load.running),
            MetricSample(Families.workers, core.pool.configuration.workers),
            MetricSample(Families.queueDepth, load.waiting),
            MetricSample(Families.queueLimit, core.pool.configuration.queue),
            MetricSample(Families.zygoteReplacements, core.pool.statistics.replacedZygotes),
            MetricSample(Families.prewarmWaiting, prewarm.waiting),
            MetricSample(Families.backgroundWaiting, background.waiting),
        ]
    }

    private func storeSamples() -> [MetricSample] {
        guard let now = core.store?.statistics else { return [] }
        var samples = [
            MetricSample(Families.storeLookups, now.hits, [("result", "hit")]),
            MetricSample(Families.storeLookups, now.misses, [("result", "miss")]),
            MetricSample(Families.storeRetries, now.retries),
            MetricSample(Families.storeReceived, now.bytesReceived),
            MetricSample(Families.storeSent, now.bytesSent),
            MetricSample(Families.storeAvailable, now.breaker == .closed ? 1 : 0),
            MetricSample(Families.storeQueued, now.queuedWrites),
            MetricSample(Families.storeQueuedBytes, now.queuedBytes),
            MetricSample(Families.storeDropped, now.droppedWrites),
        ]
        for (operation, calls) in now.calls.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            samples.append(MetricSample(Families.storeRequests, calls.count, [("operation", operation.rawValue)]))
            samples.append(
                MetricSample(Families.storeSeconds, calls.time / .seconds(1), [("operation", operation.rawValue)]))
        }
        for (cause, count) in now.failures.sorted(by: { $0.key < $1.key }) {
            samples.append(MetricSample(Families.storeFailures, count, [("cause", cause)]))
        }
        return samples
    }

    private func clusterSamples() -> [MetricSample] {
        guard let cluster = core.cluster else { return [] }
        let now = cluster.metrics
        var samples = [
            MetricSample(Families.clusterCommands, now.commands),
            MetricSample(Families.clusterRoundTrips, now.roundTrips),
            MetricSample(Families.clusterRoundTripSeconds, now.roundTripTime / .seconds(1)),
            MetricSample(Families.clusterConnections, now.connections),
            MetricSample(Families.clusterFlights, now.leasesTaken, [("part", "led")]),
            MetricSample(Families.clusterFlights, now.flightsFollowed, [("part", "followed")]),
            MetricSample(Families.clusterFlights, now.recordsFound, [("part", "found")]),
            MetricSample(Families.clusterFlights, now.flightsAlone, [("part", "alone")]),
            MetricSample(Families.clusterLeasesLost, now.leasesLost),
            MetricSample(Families.clusterPurges, now.purgesAdded, [("direction", "added")]),
            MetricSample(Families.clusterPurges, now.purgesApplied, [("direction", "applied")]),
            MetricSample(Families.clusterPurgesPending, now.purgesPending),
            MetricSample(Families.clusterRevalidations, now.revalidations),
            MetricSample(Families.clusterShared, cluster.isSharing ? 1 : 0),
            MetricSample(Families.clusterNodes, cluster.state.nodes),
        ]
        for (kind, count) in now.errors.sorted(by: { $0.key < $1.key }) {
            samples.append(MetricSample(Families.clusterErrors, count, [("kind", kind)]))
        }
        return samples
    }

    private func serverSamples() -> [MetricSample] {
        let now = server.counters
        let statuses = statuses.counts
        return [
            MetricSample(Families.connections, now.openConnections),
            MetricSample(Families.accepted, now.acceptedConnections),
            MetricSample(Families.refusedConnections, now.refusedConnections),
            MetricSample(Families.loadedPieces, now.loadedPieces),
            MetricSample(Families.statuses, statuses.kept - statuses.running, [("state", "ended")]),
            MetricSample(Families.webhooksPending, webhooks.pending),
            MetricSample(Families.statuses, statuses.running, [("state", "running")]),
            MetricSample(Families.ready, isReady() ? 1 : 0),
            MetricSample(Families.build, 1, [("version", Gifreel.version), ("revision", Gifreel.revision)]),
        ]
            + outdatedPackages.map { package in
                MetricSample(
                    Families.outdatedLibrary, 1,
                    [("library", package.name), ("linked", package.linked), ("installed", package.installed)])
            }
    }
}
