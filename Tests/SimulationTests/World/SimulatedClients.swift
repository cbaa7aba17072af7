import Digests
import Synchronization
import SystemIO

@testable import Fetch
@testable import Renditions
@testable import Store

/// The clients and the operator of a node. They cause requests of all kinds, purges and reloads, and check every response.
final class SimulatedClients: Sendable {
    private let scheduler: SimulatedScheduler
    private let ledger: Ledger
    private let node: SimulatedNode
    private let checks: ResponseChecks
    /// Objects that were seen, for purges by object.
    private let seen = Mutex<[ObjectID]>([])

    init(_ scheduler: SimulatedScheduler, _ ledger: Ledger, _ node: SimulatedNode, checksAge: Bool) {
        self.scheduler = scheduler
        self.ledger = ledger
        self.node = node
        checks = ResponseChecks(scheduler, ledger, node, checksAge: checksAge)
    }

    /// Starts one event: mostly a request.
    func startEvent() {
        let url = scheduler.number(0...Ledger.urls.count - 1)
        switch scheduler.number(0...99) {
        case 0..<45: request(url) { clients, request, floor in await clients.find(request, url, floor) }
        case 45..<55: request(url) { clients, request, floor in await clients.follow(request, url, floor) }
        case 55..<63: leave(url)
        case 63..<70: upload(Ledger.group(url))
        case 70..<74: look(url)
        case 74..<78: start { clients in clients.node.pipeline.produceBehindResponse(clients.randomRequest(url)) }
        case 78..<88: replace(Ledger.group(url))
        case 88..<96: purge(randomScope(url))
        case 96..<98: node.cache.forgetHot()
        default: reload()
        }
    }

    /// Requests every rendition of every source once.
    func requestAll() {
        for url in Ledger.urls.indices {
            for rendition in Self.renditions {
                request(url, rendition) { clients, request, floor in await clients.find(request, url, floor) }
            }
        }
    }

    private func start(_ work: @escaping @Sendable (SimulatedClients) async -> Void) {
        Task(executorPreference: scheduler) { await work(self) }
    }

    // MARK: Requests

    private static let renditions: [Rendition] = {
        var small = Rendition(format: .mp4)
        try? small.set("quality", to: "30")
        return [Rendition(format: .mp4), small, Rendition(format: .original)]
    }()

    private func randomRequest(_ url: Int) -> RenditionRequest {
        makeRequest(url, scheduler.element(of: Self.renditions))
    }

    private func makeRequest(_ url: Int, _ rendition: Rendition) -> RenditionRequest {
        guard let source = try? SourceURL(Ledger.urls[url]) else { preconditionFailure("a URL of the ledger is valid") }
        return RenditionRequest(
            rendition, of: source, alternative: scheduler.chance(0.2) ? Rendition(format: .original) : nil)
    }

    /// Starts a request whose response is counted. `body` returns whether it is an error.
    private func request(
        _ url: Int, _ rendition: Rendition? = nil,
        _ body: @escaping @Sendable (SimulatedClients, RenditionRequest, Ledger.Floor) async -> Bool
    ) {
        start { clients in
            let floor = clients.ledger.requestBegan()
            let request = rendition.map { clients.makeRequest(url, $0) } ?? clients.randomRequest(url)
            let isError = await body(clients, request, floor)
            clients.ledger.requestEnded(isError: isError, isLost: clients.node.hasCrashed)
        }
    }

    private func find(_ request: RenditionRequest, _ url: Int, _ floor: Ledger.Floor) async -> Bool {
        let began = scheduler.now
        do throws(RenditionError) {
            let result = try await node.pipeline.find(request)
            check(result, of: request.rendition, Ledger.group(url), url, floor, began)
            return false
        } catch {
            checks.check(error, url, floor)
            return true
        }
    }

    private func follow(_ request: RenditionRequest, _ url: Int, _ floor: Ledger.Floor) async -> Bool {
        let began = scheduler.now
        do throws(RenditionError) {
            switch try await node.pipeline.findOrFollow(request) {
            case .rendition(let result):
                let gif = result.rendition.fileExtension == "original" ? Rendition(format: .original) : request.rendition
                check(result, of: gif, Ledger.group(url), url, floor, began)
                return false
            case .source(let source): return await !read(source, url, floor)
            }
        } catch {
            checks.check(error, url, floor)
            return true
        }
    }

    /// Reads the bytes of a source while they arrive. Returns false if it breaks off.
    private func read(_ source: FollowedSource, _ url: Int, _ floor: Ledger.Floor) async -> Bool {
        let bytes = Mutex<[UInt8]>([])
        do {
            try await source.forEachPiece { piece in
                await scheduler.wait(for: .milliseconds(scheduler.number(0...500)))
                bytes.withLock { $0 += piece }
            }
        } catch {
            return false
        }
        checks.check(followed: bytes.withLock { $0 }, url, floor)
        return true
    }

    private func leave(_ url: Int) {
        request(url) { clients, request, floor in
            let task = Task(executorPreference: clients.scheduler) { await clients.find(request, url, floor) }
            await clients.scheduler.wait(for: .milliseconds(clients.scheduler.number(0...3000)))
            task.cancel()
            return await task.value
        }
    }

    private func look(_ url: Int) {
        request(url) { clients, request, floor in
            let began = clients.scheduler.now
            guard let stored = await clients.node.pipeline.stored(request) else { return true }
            clients.checks.check(stored, of: request.rendition, Ledger.group(url), url, floor, began)
            return false
        }
    }

    private func upload(_ group: UInt8) {
        start { clients in
            let floor = clients.ledger.requestBegan()
            let isError = await clients.findUpload(group, floor)
            clients.ledger.requestEnded(isError: isError, isLost: clients.node.hasCrashed)
        }
    }

    private func findUpload(_ group: UInt8, _ floor: Ledger.Floor) async -> Bool {
        let contents = ledger.contents(group)
        guard var file = try? MemoryFile(name: "upload"),
            (try? contents.bytes.withUnsafeBytes { try file.append($0) }) != nil, let sealed = try? file.seal()
        else { return true }
        let rendition = Self.renditions[0]
        do throws(RenditionError) {
            let source = SourceFile(bytes: sealed, count: contents.bytes.count, digest: contents.digest)
            let result = try await node.pipeline.find(UploadRequest(rendition, of: source))
            let made = checks.check(result.rendition, of: rendition, group, nil, floor, scheduler.now)
            if let made, made != contents { checks.report("an upload is answered with another version") }
            return false
        } catch {
            return true
        }
    }

    // MARK: Operations

    private func randomScope(_ url: Int) -> PurgeScope {
        switch scheduler.number(0...9) {
        case 0..<6: .url(Ledger.urls[url])
        case 6: .prefix("https://a.test/")
        case 7: .prefix(String(Ledger.urls[url].dropLast(3)))
        case 8: seen.withLock { $0.last }.map { .object($0) } ?? .all
        default: .all
        }
    }

    private func replace(_ group: UInt8) {
        ledger.replace(group, at: scheduler.now)
        note("the sources \(group) have version \(ledger.contents(group).version)")
    }

    private func purge(_ scope: PurgeScope) {
        start { clients in
            // Often a purge follows a change.
            if case .url(let url) = scope, let number = Ledger.urls.firstIndex(of: url), clients.scheduler.chance(0.7) {
                clients.replace(Ledger.group(number))
            }
            let floor = clients.ledger.floor(after: scope)
            clients.note("purge of \(scope) begins")
            var isDurable = true
            do throws(CacheError) {
                try await clients.node.purge(scope)
            } catch .purgeNotDurable {
                isDurable = false
            } catch {
                return
            }
            clients.note("purge of \(scope) has returned, durable: \(isDurable)")
            // A client of a crashed process gets no response.
            if !clients.node.hasCrashed { clients.ledger.purged(floor, isDurable: isDurable) }
        }
    }

    private func reload() {
        var rules = OriginRules()
        rules.maxFreshFor = scheduler.chance(0.5) ? Limits.longest : 60
        rules.minFreshFor = 10
        note("reload, longest \(rules.maxFreshFor)")
        let jobs = scheduler.number(1...16)
        rules.obeyOrigin = scheduler.chance(0.8)
        node.reload(jobs: jobs, rules: rules)
    }

    // MARK: Responses

    private func note(_ event: String) {
        ledger.note("\(scheduler.steps) \(scheduler.now / 1_000_000) ms: \(event)")
    }

    private func check(
        _ result: RenditionResult, of rendition: Rendition, _ group: UInt8, _ url: Int, _ floor: Ledger.Floor,
        _ began: UInt64
    ) {
        note("source \(url) \(rendition.canonicalText): \(result.provenance)")
        seen.withLock { $0 = $0.suffix(20) + [result.rendition.objectID] }
        checks.check(result.rendition, of: rendition, group, url, floor, began)
    }
}
