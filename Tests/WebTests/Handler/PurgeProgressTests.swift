import Fetch
import Fleet
import Foundation
import Store
import Synchronization
import TestSupport
import Testing

@testable import Renditions
@testable import Web

/// Other nodes, of which some have not applied a purge.
private final class SlowNodes: NodePurger {
    private struct State {
        var acknowledged = 1
        var waits: [Duration?] = []
        var isReachable = true
    }

    private let state = Mutex(State())

    var waits: [Duration?] { state.withLock { $0.waits } }
    func acknowledge() { state.withLock { $0.acknowledged = 3 } }
    func lose() { state.withLock { $0.isReachable = false } }

    private var report: PurgeReport {
        PurgeReport(
            counts: PurgeCounts(purged: 2, bytes: 10), nodes: 3, acknowledged: state.withLock { $0.acknowledged }, id: "7-0")
    }

    func broadcast(_ scope: PurgeScope, within limit: Duration?) async -> PurgeReport {
        state.withLock { $0.waits.append(limit) }
        return report
    }

    func progress(of id: String) async throws -> PurgeReport? {
        if !state.withLock({ $0.isReachable }) { throw CancellationError() }
        return id == "7-0" ? report : nil
    }
}

@Suite("Purges of a cluster are reported until they are complete") struct PurgeProgressTests {
    private static let token = ["Authorization: Bearer secret"]

    private func run(_ nodes: SlowNodes, hook: String? = nil, _ body: (WebFixture) async throws -> Void) async throws {
        try await WebFixture.run([:]) { settings in
            settings.policy.adminToken = "secret"
            settings.nodes = nodes
            settings.hookLimits.look = .milliseconds(10)
            settings.hookLimits.patience = .seconds(3600)
            if let hook {
                settings.hooks = [PurgeHook(name: "cdn", url: hook, method: "POST", fields: [], body: "{}")]
            }
        } _: { web async throws in
            try await body(web)
        }
    }

    @Test func anIncompletePurgeHasAnAddressWithItsProgress() async throws {
        let nodes = SlowNodes()
        try await run(nodes) { web async throws in
            let purge = try await web.request("PURGE", web.target("mp4", "/a.gif"), headers: Self.token)
            #expect(purge.status == 202 && purge["location"] == "/purges/7-0")
            let first = try await web.request("GET", "/purges/7-0", headers: Self.token)
            #expect(first.status == 200 && first["cache-control"] == "no-store")
            #expect(try first.json()["complete"] as? Bool == false)
            #expect(try first.json()["acknowledged"] as? Int == 1)
            nodes.acknowledge()
            let second = try await web.request("GET", "/purges/7-0", headers: Self.token)
            #expect(try second.json()["complete"] as? Bool == true)
            #expect(try second.json()["nodes"] as? Int == 3)
            let complete = try await web.request("PURGE", web.target("mp4", "/a.gif"), headers: Self.token)
            #expect(complete.status == 200 && complete["location"] == nil)
            #expect(try await web.request("GET", "/purges/8-0", headers: Self.token).status == 404)
            #expect(try await web.request("GET", "/purges/7-0").status == 401)
            nodes.lose()
            #expect(try await web.request("GET", "/purges/7-0", headers: Self.token).status == 503)
        }
    }

    @Test func aPurgeWaitsAsLongAsItsRequestSays() async throws {
        let nodes = SlowNodes()
        try await run(nodes) { web async throws in
            let verbatim = web.target("mp4", "/a.gif")
            let object = "/object/\(String(repeating: "0", count: 64)).mp4"
            for (method, target, field) in [
                ("PURGE", "/mp4?url=https://a.test/a.gif&wait=30s", ""), ("PURGE", object + "?wait=500ms", ""),
                ("DELETE", "/cache?all=true&wait=2m", ""), ("DELETE", "/cache?all=true", "Prefer: wait=7"),
                ("PURGE", verbatim, "Prefer: respond-async, wait=9"), ("PURGE", verbatim + "?wait=30s", ""),
                ("PURGE", verbatim, "Prefer: wait=99999999999999999999"),
            ] {
                let response = try await web.request(method, target, headers: Self.token + (field.isEmpty ? [] : [field]))
                #expect(response.status == 202, "\(target): \(response.text)")
            }
            // In the last but one, the query belongs to the source.
            let waits: [Duration] = nodes.waits.map { $0 ?? .zero }
            let expected: [Duration] = [.seconds(30), .milliseconds(500), .seconds(120), .seconds(7), .seconds(9), .zero]
            #expect(Array(waits.prefix(6)) == expected && waits.count == 7)
            for text in ["301s", "x", "-1s", "1h", "", "9999999m"] {
                let response = try await web.request("DELETE", "/cache?all=true&wait=\(text)", headers: Self.token)
                #expect(response.status == 400 && response.code == "bad_request", "\(text)")
            }
        }
    }

    @Test func hooksAreCalledWhenThePurgeIsComplete() async throws {
        let nodes = SlowNodes()
        let cdn = try LoopbackOrigin(["/purge": { _ in .ok([]) }])
        defer { cdn.stop() }
        try await run(nodes, hook: cdn.url("/purge")) { web async throws in
            #expect(try await web.request("DELETE", "/cache?all=true", headers: Self.token).status == 202)
            #expect(cdn.count("/purge") == 0)
            nodes.acknowledge()
            try await waitUntil("the hook") { cdn.count("/purge") == 1 }
        }
        #expect(cdn.count("/purge") == 1)
    }

    @Test func aStopCallsTheHooksOfIncompletePurges() async throws {
        let nodes = SlowNodes()
        let cdn = try LoopbackOrigin(["/purge": { _ in .ok([]) }])
        defer { cdn.stop() }
        try await run(nodes, hook: cdn.url("/purge")) { web async throws in
            #expect(try await web.request("DELETE", "/cache?all=true", headers: Self.token).status == 202)
        }
        #expect(cdn.count("/purge") == 1)
    }
}
