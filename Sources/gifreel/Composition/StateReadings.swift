internal import Cache
internal import Fetch
internal import HTTP
internal import Prewarm
internal import PrometheusMetrics
internal import Sandbox
internal import Web

/// Reads the counters that the parts of the service keep themselves, whenever the metrics are collected.
struct StateReadings: Sendable {
    private let core: RenditionCore
    private let server: HTTPServer
    private let prewarm: PrewarmQueue
    private let isReady: @Sendable () -> Bool

    init(core: RenditionCore, server: HTTPServer, prewarm: PrewarmQueue, isReady: @escaping @Sendable () -> Bool) {
        self.core = core
        self.server = server
        self.prewarm = prewarm
        self.isReady = isReady
    }

    func samples() -> [MetricSample] {
        cacheSamples() + fetchSamples() + poolSamples() + serverSamples()
    }

    private func cacheSamples() -> [MetricSample] {
        let now = core.cache.statistics()
        return [
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
            MetricSample(Families.storing, now.isStoring ? 1 : 0),
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
        ]
    }

    private func serverSamples() -> [MetricSample] {
        let now = server.counters
        return [
            MetricSample(Families.connections, now.openConnections),
            MetricSample(Families.accepted, now.acceptedConnections),
            MetricSample(Families.ready, isReady() ? 1 : 0),
            MetricSample(Families.build, 1, [("version", Gifreel.version)]),
        ]
    }
}
