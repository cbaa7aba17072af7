import Fetch
import HTTP
import Logging
import Store
import SystemIO
import TestSupport
import Testing

@testable import Web

@Suite("The admin interface") struct AdminTests {
    private static let gif = GIFBuilder.animation(frames: 3)
    private static let token = ["Authorization: Bearer secret"]
    private let paths: [String: LoopbackOrigin.Handler] = [
        "/up/a.gif": { _ in .ok(gif) }, "/up/b.gif": { _ in .ok(gif + [1]) }, "/c.gif": { _ in .ok(gif + [2]) },
    ]
    private let configure: (inout WebFixture.Settings) -> Void = { $0.policy.adminToken = "secret" }

    @Test func withoutATokenTheAdminInterfaceDoesNotExist() async throws {
        try await WebFixture.run(paths) { web async throws in
            for (method, target) in [
                ("GET", "/cache"), ("DELETE", "/cache?all=true"), ("POST", "/prewarm"), ("GET", "/metrics"),
                ("PURGE", web.target("mp4", "/c.gif")), ("PURGE", "/object/\(String(repeating: "0", count: 64)).mp4"),
            ] {
                let response = try await web.request(method, target, headers: Self.token)
                #expect(response.status == 404 && response.code == "not_found", "\(target)")
                #expect(response.detail == "The admin interface is off: no admin token is configured.", "\(target)")
            }
            let refused = try await web.request("DELETE", web.target("mp4", "/c.gif"))
            #expect(refused.status == 405 && refused["allow"] == "GET, HEAD, OPTIONS")
            #expect(try await web.request("OPTIONS", web.target("mp4", "/c.gif"))["allow"] == "GET, HEAD, OPTIONS")
        }
    }

    @Test(arguments: [nil, "secret", "Bearer", "Bearer ", "Bearer Secret", "Bearer secret2", "Basic secret", "Bearer  s ecret"])
    func aWrongTokenIsRefusedForEveryRoute(_ field: String?) async throws {
        try await WebFixture.run([:], configure) { web async throws in
            let headers = field.map { ["Authorization: \($0)"] } ?? []
            for (method, target) in [
                ("GET", "/cache"), ("DELETE", "/cache?all=true"), ("PURGE", web.target("mp4", "/c.gif")), ("POST", "/prewarm"),
                ("GET", "/prewarm/1"), ("GET", "/metrics"), ("PURGE", "/object/\(String(repeating: "0", count: 64)).mp4"),
            ] {
                let response = try await web.request(method, target, headers: headers)
                #expect(response.status == 401 && response["www-authenticate"] == "Bearer", "\(method) \(target)")
            }
        }
    }

    @Test(arguments: ["Bearer secret", "bearer secret", "BEARER  secret", "Bearer    secret"])
    func theSchemeHasAnyCaseAndAnySpacesAfterIt(_ field: String) async throws {
        try await WebFixture.run([:], configure) { web async throws in
            #expect(try await web.request("GET", "/cache", headers: ["Authorization: \(field)"]).status == 200)
        }
    }

    @Test func aListThatIsSentTwiceWithOneKeyIsOneJob() async throws {
        try await WebFixture.run([:], configure) { web async throws in
            let list = #"[{"url":"https://a.test/a.gif"}]"#
            func send(_ target: String, _ body: String, key: String) async throws -> RawHTTPResponse {
                try await web.request(
                    "POST", target, headers: Self.token + ["Idempotency-Key: \(key)"], body: Array(body.utf8))
            }
            let first = try await send("/prewarm", list, key: "\"k\"")
            #expect(first.status == 202)
            let again = try await send("/prewarm", list, key: "k")
            #expect(again.status == 202 && again["location"] == first["location"] && again.body == first.body)
            for (target, body) in [("/prewarm", list + " "), ("/prewarm?retries=3", list)] {
                let other = try await send(target, body, key: "k")
                #expect(other.status == 422 && other.code == "idempotency_key_reused", "\(other.text)")
            }
            #expect(try await send("/prewarm", list, key: "l")["location"] != first["location"])
            for key in ["\"\"", String(repeating: "k", count: 256)] {
                #expect(try await send("/prewarm", list, key: key).status == 400)
            }
        }
    }

    @Test func theJobsAreListedNewestFirst() async throws {
        try await WebFixture.run([:], configure) { web async throws in
            var ids: [String] = []
            for number in 0..<3 {
                let body = Array(#"[{"url":"https://a.test/\#(number).gif"}]"#.utf8)
                let job = try await web.request("POST", "/prewarm", headers: Self.token, body: body)
                ids.append(try #require(try job.json()["id"] as? String))
            }
            let list = try await web.request("GET", "/prewarm", headers: Self.token)
            let jobs = try #require(try list.json()["jobs"] as? [[String: Any]])
            let listed = jobs.compactMap { $0["id"] as? String }
            #expect(list.status == 200 && Set(listed) == Set(ids))
            for job in jobs {
                let added = try #require(job["added"] as? Int)
                #expect(added > 1_700_000_000 && job["total"] as? Int == 1)
            }
            #expect(try await web.request("GET", "/prewarm").status == 401)
        }
    }

    @Test func aPurgeRemovesEveryRenditionOfASourceAndNoOther() async throws {
        try await WebFixture.run(paths, configure) { web async throws in
            for path in ["/up/a.gif", "/c.gif"] {
                for format in ["mp4", "jpg"] { #expect(try await web.request("GET", web.target(format, path)).status == 200) }
            }
            let purged = try await web.request("PURGE", web.target("png,width=9", "/up/a.gif"), headers: Self.token)
            #expect(purged.status == 200 && purged["cache-control"] == "no-store")
            #expect(try purged.json()["purged"] as? Int == 2)
            #expect(
                try await web.request("GET", web.target("mp4", "/up/a.gif"))["cache-status"] == "gifreel; fwd=miss; stored")
            #expect(try await web.request("GET", web.target("mp4", "/c.gif"))["cache-status"] == "gifreel; hit")
        }
    }

    @Test func aSourceIsListedWithItsRenditionsTheNewestFirst() async throws {
        let time = AdvancingClock()
        try await WebFixture.run(
            paths,
            { settings in
                configure(&settings)
                settings.cacheClock = time.clock
            }
        ) { web async throws in
            for target in [web.target("jpg,width=9", "/c.gif"), web.target("mp4", "/c.gif"), web.target("mp4", "/up/a.gif")] {
                #expect(try await web.request("GET", target).status == 200)
            }
            for _ in 0..<2 { _ = try await web.request("GET", web.target("mp4", "/c.gif")) }
            time.pass(10)
            let target = "/cache?url=\(web.origin.url("/c.gif").replacing("http:", with: "HTTP:"))"
            let answer = try await web.request("GET", target, headers: Self.token)
            #expect(answer.status == 200 && answer["cache-control"] == "no-store")
            #expect(try answer.json()["url"] as? String == web.origin.url("/c.gif"))
            let listed = try #require(try answer.json()["renditions"] as? [[String: Any]])
            #expect(listed.compactMap { $0["format"] as? String } == ["mp4", "jpg"])
            #expect(listed.compactMap { $0["options"] as? [String: String] } == [[:], ["width": "9"]])
            #expect(listed[0]["hits"] as? Int == 3 && listed[1]["hits"] as? Int == 1)
            let age = try #require(listed[0]["age"] as? Int)
            let left = try #require(listed[0]["fresh_for"] as? Int)
            #expect((10...600).contains(age) && listed[0]["state"] as? String == "fresh" && left > 0)
            let path = try #require(listed[0]["object"] as? String)
            let object = try await web.request("GET", path)
            #expect(object.status == 200 && object.body.count == listed[0]["bytes"] as? Int)

            time.pass(Int64(left))
            let later = try await web.request("GET", target, headers: Self.token)
            let stale = try #require((try later.json()["renditions"] as? [[String: Any]])?.first)
            #expect(stale["state"] as? String == "stale" && stale["fresh_for"] as? Int == 0)
            #expect(try await web.request("DELETE", target, headers: Self.token).status == 200)
            let none = try await web.request("GET", target, headers: Self.token)
            #expect((try none.json()["renditions"] as? [Any])?.isEmpty == true)
            for bad in ["/cache?url=nonsense", "/cache?url=http://a.test/a.gif&all=true"] {
                #expect(try await web.request("GET", bad, headers: Self.token).status == 400, "\(bad)")
            }
        }
    }

    @Test func aPurgeThatIsNotOnTheDiskIsReportedAsInEffect() async throws {
        try await WebFixture.run(paths, configure) { web async throws in
            _ = try await web.request("GET", web.target("png", "/c.gif"))
            let address = "/cache?url=\(web.origin.url("/c.gif"))"
            try web.cache.ledger.write(.normal) { database in
                try database.execute(
                    "CREATE TRIGGER refusal BEFORE INSERT ON purges BEGIN SELECT RAISE(ABORT, 'the disk is broken'); END")
            }
            let purged = try await web.request("DELETE", address, headers: Self.token)
            #expect(purged.status == 503 && purged["retry-after"] == "1")
            #expect(
                purged.detail == "The purge is in effect, but not on the disk yet: a restart may undo it. Repeat it later.")
            let listed = try await web.request("GET", address, headers: Self.token)
            #expect((try listed.json()["renditions"] as? [Any])?.isEmpty == true)
        }
    }

    @Test func anAddressOnTheServerStandsForItsSource() async throws {
        try await WebFixture.run(paths) { settings in
            configure(&settings)
            settings.policy.publicURL = "https://gifs.example"
            settings.policy.mounts["m"] = Mount(origin: try SourceURL("https://a.test/"))
        } _: { web async throws in
            let mounted = "/cache?url=https://gifs.example/m/a.mp4%3Fwidth=9%26fbclid=1"
            let listed = try await web.request("GET", mounted, headers: Self.token)
            #expect(try listed.json()["url"] as? String == "https://a.test/a.gif", "\(listed.text)")
            for (tracked, status) in [("/m/a.mp4?fbclid=1", 200), ("/m/a.mp4?other=1", 400)] {
                #expect(try await web.request("PURGE", tracked, headers: Self.token).status == status, "\(tracked)")
            }
            let source = web.origin.url("/up/a.gif")
            for address in [
                "/html/\(source)%3Futm_source=x", "/png%3Furl=\(PercentEncoding.encode(source))%26fbclid=1",
                "/png,width=9/\(source)", "https://gifs.example/html/\(source)", "HTTPS://GIFS.example:443/html/\(source)",
                "http://gifs.example/html/\(source)", source,
            ] {
                _ = try await web.request("GET", web.target("png", "/up/a.gif"))
                let listed = try await web.request("GET", "/cache?url=\(address)", headers: Self.token)
                #expect(try listed.json()["url"] as? String == source, "\(listed.text)")
                let purged = try await web.request("DELETE", "/cache?url=\(address)", headers: Self.token)
                #expect(try purged.json()["purged"] as? Int == 1, "\(address): \(purged.text)")
            }
            // A source may be below the server's public URL.
            let other = try await web.request("DELETE", "/cache?url=https://gifs.example/b.gif", headers: Self.token)
            #expect(try other.json()["purged"] as? Int == 0, "\(other.text)")
            #expect(try await web.request("DELETE", "/cache?url=/healthz", headers: Self.token).status == 400)
        }
    }

    @Test func aPrefixMayBeTheBeginningOfAddressesOnTheServer() async throws {
        let origin = try LoopbackOrigin(paths)
        defer { origin.stop() }
        try await WebFixture.run { settings in
            configure(&settings)
            settings.policy.publicURL = "https://gifs.example"
            settings.policy.mounts["media"] = Mount(origin: try SourceURL(origin.url("/up/")))
        } _: { web async throws in
            for (prefix, count) in [
                ("/media/a", 1), ("https://gifs.example/media/", 2), ("HTTP://gifs.example:80/media/b.g", 1),
                ("/mp4,width=20/" + origin.url("/up/"), 2), ("https://gifs.example/auto/" + origin.url("/up/a"), 1),
                // A source may be below the server's public URL.
                ("https://gifs.example/other/", 0),
            ] {
                for name in ["a", "b"] { #expect(try await web.request("GET", "/media/\(name).png").status == 200) }
                let target = "/cache?prefix=\(PercentEncoding.encode(prefix))"
                let purged = try await web.request("DELETE", target, headers: Self.token)
                #expect(try purged.json()["purged"] as? Int == count, "\(prefix): \(purged.text)")
            }
            for prefix in ["/media", "/other/", "/mp4/", "/mp4/up/", "/media/../", "/media/%252e%252e/x", "/media/a/../../"] {
                let response = try await web.request("DELETE", "/cache?prefix=\(prefix)", headers: Self.token)
                #expect(response.status == 400 && response.code == "bad_source_url", "\(prefix)")
            }
            // The beginning of a scheme would cover all sources that have it.
            for prefix in ["/mp4/h", "/mp4/https", "/auto/http:/", "/mp4,width=20/s3:", "https://gifs.example/mp4/http"] {
                let response = try await web.request("DELETE", "/cache?prefix=\(prefix)", headers: Self.token)
                #expect(response.status == 400 && response.code == "bad_source_url", "\(prefix)")
            }
            // The command sends paths in place of URLs on the server, which would not “begin with http://”.
            for query in ["prefix=/other/", "prefix=/mp4/", "url=/other/a.gif", "url=/mp4/"] {
                let response = try await web.request("DELETE", "/cache?\(query)", headers: Self.token)
                #expect(response.detail == "This path on the server leads to no source.", "\(query)")
            }
        }
    }

    @Test func aPrefixInAnySpellingOfItsHostCoversItsSources() async throws {
        try await WebFixture.run(paths, configure) { web async throws in
            for path in ["/up/a.gif", "/up/b.gif", "/c.gif"] { _ = try await web.request("GET", web.target("png", path)) }
            let prefix = web.origin.url("/up/").replacing("http:", with: "HTTP:")
            let purged = try await web.request("DELETE", "/cache?prefix=\(prefix)", headers: Self.token)
            #expect(try purged.json()["purged"] as? Int == 2, "\(purged.text)")
            let none = try await web.request("DELETE", "/cache?url=\(web.origin.url("/up/a.gif"))", headers: Self.token)
            #expect(none.status == 200)
            #expect(try none.json()["purged"] as? Int == 0)
            let all = try await web.request("DELETE", "/cache?all=true", headers: Self.token)
            #expect(try all.json()["purged"] as? Int == 1)
        }
    }

    @Test(arguments: [
        ("/f/%c3%bc/", 1), ("/f/ü/", 1), ("/f/ü", 1), ("/f/%7Ex/", 1), ("/f/a b/", 1), ("/f/a%20b/a", 1), ("/g/../f/", 3),
        ("/f/..", 0),
    ])
    func aPrefixInAnySpellingOfItsPathCoversItsSources(_ path: String, _ count: Int) async throws {
        var paths: [String: LoopbackOrigin.Handler] = [:]
        // Different bytes, so that each source has an object of its own.
        for (number, source) in ["/f/%C3%BC/a.gif", "/f/~x/a.gif", "/f/a%20b/a.gif"].enumerated() {
            paths[source] = { _ in .ok(Self.gif + [UInt8(number)]) }
        }
        try await WebFixture.run(paths, configure) { web async throws in
            for source in paths.keys { #expect(try await web.request("GET", web.target("png", source)).status == 200) }
            let prefix = PercentEncoding.encode(web.origin.url(path))
            let purged = try await web.request("DELETE", "/cache?prefix=\(prefix)", headers: Self.token)
            #expect(try purged.json()["purged"] as? Int == count, "\(purged.text)")
        }
    }

    @Test(arguments: ["http://a.test/%C3%B", "ftp://a.test/", "http://a.test/a#b", "http://u@a.test", "http://a.test:99999"])
    func aPrefixOfNoSourceIsRefused(_ prefix: String) async throws {
        try await WebFixture.run([:], configure) { web async throws in
            let target = "/cache?prefix=\(PercentEncoding.encode(prefix))"
            let response = try await web.request("DELETE", target, headers: Self.token)
            #expect(response.status == 400 && response.code == "bad_source_url")
        }
    }

    @Test(arguments: ["", "?all=yes", "?url=a&prefix=b", "?prefix=", "?x=1"]) func aPurgeWithoutAClearScopeIsRefused(
        _ query: String
    ) async throws {
        try await WebFixture.run([:], configure) { web async throws in
            let response = try await web.request("DELETE", "/cache\(query)", headers: Self.token)
            #expect(response.status == 400 && response.code == "bad_request")
        }
    }

    @Test func theStatisticsCountObjectsHitsAndMisses() async throws {
        try await WebFixture.run(paths, configure) { web async throws in
            for _ in 0..<3 { _ = try await web.request("GET", web.target("png", "/c.gif")) }
            let statistics = try await web.request("GET", "/cache", headers: Self.token).json()
            #expect(statistics["objects"] as? Int == 1 && statistics["misses"] as? Int == 1)
            #expect(statistics["hits"] as? Int == 2 && statistics["in_progress"] as? Int == 0)
        }
    }

    @Test func aPrewarmJobIsAcceptedReportedAndCancelled() async throws {
        try await WebFixture.run(paths, configure) { web async throws in
            let list = Array("{\"url\":\"http://a.test/1.gif\"}\n{\"url\":\"http://a.test/2.gif\",\"format\":\"jpg\"}\n".utf8)
            let accepted = try await web.request("POST", "/prewarm?retries=0&concurrency=9", headers: Self.token, body: list)
            #expect(accepted.status == 202)
            let id = try #require(try accepted.json()["id"] as? String)
            #expect(try accepted.json()["total"] as? Int == 2)
            #expect(id.count == 32 && accepted["location"] == "/prewarm/\(id)")
            let report = try await web.request("GET", "/prewarm/\(id)", headers: Self.token)
            #expect(report.status == 200 && report["cache-control"] == "no-store")
            #expect(try report.json()["total"] as? Int == 2)
            #expect(try await web.request("DELETE", "/prewarm/\(id)", headers: Self.token).status == 200)
            for query in ["?from=-1", "?from=x", "?x=1"] {
                #expect(try await web.request("GET", "/prewarm/\(id)\(query)", headers: Self.token).status == 400, "\(query)")
            }
        }
    }

    /// Lines at warning or above are about faults of the server.
    @Test func aPurgeDuringAMissIsNoFault() async throws {
        let gate = try LoopbackGate()
        defer { gate.open() }
        let head = Array("HTTP/1.1 200 OK\r\nContent-Length: \(Self.gif.count)\r\nConnection: close\r\n\r\n".utf8)
        let slow: LoopbackOrigin.Handler = { _ in LoopbackAnswer(steps: [.wait(until: gate), .send(head + Self.gif)]) }
        try await WebFixture.run(["/a.gif": slow], configure) { web async throws in
            let target = web.target("mp4", "/a.gif")
            async let response = web.request("GET", target)
            try await waitUntil("the fetch") { web.origin.count("/a.gif") == 1 }
            #expect(try await web.request("PURGE", target, headers: Self.token).status == 200)
            gate.open()
            let answer = try await response
            #expect(answer["cache-status"] == "gifreel; fwd=miss; detail=purged")
            let line = try #require(web.log.all.first { $0.metadata["reason"] != nil })
            #expect(line.level == .info)
        }
    }

    @Test func aPrewarmListThatIsMalformedOrTooLongIsRefused() async throws {
        try await WebFixture.run([:], configure) { web async throws in
            for (query, body) in [("", "nonsense"), ("?retries=21", "{}"), ("?concurrency=0", "{}"), ("?x=1", "{}")] {
                let response = try await web.request(
                    "POST", "/prewarm\(query)", headers: Self.token, body: Array(body.utf8))
                #expect(response.status == 400 && response.code == "bad_request", "\(query)")
            }
            let list = (0..<11).map { "{\"url\":\"http://a.test/\($0).gif\"}\n" }.joined()
            let response = try await web.request("POST", "/prewarm", headers: Self.token, body: Array(list.utf8))
            #expect(response.status == 400 && response.detail == "The list has 11 URLs; the limit is 10.")
        }
    }

    @Test func aListThatIsReadDoesNotDelayTheMetricsAndAFullQueueIsNoEnd() async throws {
        try await WebFixture.run([:], configure) { web async throws in
            let release = Semaphore()
            let isBlocked = web.admin.submit { release.wait() }
            #expect(isBlocked)
            #expect(try await web.request("GET", "/metrics", headers: Self.token).status == 200)
            while web.admin.submit({}) {}
            let list = Array("http://a.test/a.gif".utf8)
            let response = try await web.request("POST", "/prewarm", headers: Self.token, body: list)
            #expect(response.status == 503 && response.code == "overloaded" && response["retry-after"] == "2")
            release.signal()
        }
    }

    @Test func metricsNeedATokenUnlessTheClientIsListed() async throws {
        let allow: (inout WebFixture.Settings) throws -> Void = {
            $0.policy.adminToken = "secret"
            $0.policy.metricsReaders = ClientList([try #require(ClientPattern("127.0.0.0/8"))])
        }
        try await WebFixture.run(paths, allow) { web async throws in
            _ = try await web.request("GET", web.target("png", "/c.gif"))
            let text = try await web.request("GET", "/metrics")
            #expect(text.status == 200 && text["vary"] == "Accept" && text["cache-control"] == "no-store")
            #expect(text.text.contains("gifreel_"))
        }
        try await WebFixture.run(paths, configure) { web async throws in
            #expect(try await web.request("GET", "/metrics").status == 401)
            #expect(try await web.request("GET", "/metrics", headers: Self.token).status == 200)
        }
    }

    /// The addresses of an unlisted balancer and proxy are on the list, and so may be the client's that they report.
    @Test(
        arguments: [
            ([], "X: y", 200), ([], "X-Forwarded-For: 127.0.0.2", 401), ([], "Via: 1.1 proxy", 401),
            ([], "X-Real-IP: 127.0.0.2", 401),
            (["127.0.0.1"], "X: y", 200), (["127.0.0.1"], "X-Forwarded-For: 127.0.0.2", 200),
            (["127.0.0.1"], "X-Forwarded-For: 127.0.0.1", 401), (["127.0.0.1"], "X-Forwarded-For: 1.2.3.4", 401),
        ] as [([String], String, Int)])
    func metricsForUnknownClientsOfAProxyNeedAToken(_ trusted: [String], _ field: String, _ status: Int) async throws {
        try await WebFixture.run(paths) { settings in
            settings.policy.adminToken = "secret"
            settings.policy.metricsReaders = ClientList([try #require(ClientPattern("127.0.0.0/8"))])
            settings.trustedProxies = ClientList(try trusted.map { try #require(ClientPattern($0)) })
        } _: { web async throws in
            #expect(try await web.request("GET", "/metrics", headers: [field]).status == status)
            #expect(try await web.request("GET", "/metrics", headers: [field] + Self.token).status == 200)
        }
    }

    /// Requests of a page whose name resolves to the server's address come from the browser's address.
    @Test func metricsWithoutATokenNeedANameThatNoPageHas() async throws {
        try await WebFixture.run(paths) { settings in
            settings.policy.adminToken = "secret"
            settings.policy.metricsReaders = ClientList([try #require(ClientPattern("127.0.0.0/8"))])
            settings.policy.metricsHosts = [try #require(SourcePattern("*.monitoring.example"))]
            settings.policy.publicURL = "https://gifs.example:8443"
        } _: { web async throws in
            let own = [
                "127.0.0.1", "[::1]:8080", "localhost:8080", "gifreel", "gifreel-1:8080", "a.localhost",
                "gifreel.svc.cluster.local:80",
                "metrics.internal", "box.home.arpa", "a.monitoring.example:9", "GIFS.example",
            ]
            for host in own {
                let response = try await web.request("GET", "/metrics", headers: ["Host: \(host)"])
                #expect(response.status == 200 && response["access-control-allow-origin"] == nil, "\(host)")
            }
            for host in ["evil.example", "evil.example:8080", "monitoring.example", "127.0.0.1.evil.example", "local.example"] {
                let response = try await web.request("GET", "/metrics", headers: ["Host: \(host)"])
                #expect(response.status == 401 && response.detail?.contains("metrics.hosts") ?? false, "\(host)")
                let granted = try await web.request("GET", "/metrics", headers: ["Host: \(host)"] + Self.token)
                #expect(granted.status == 200, "\(host)")
            }
        }
    }

    @Test func twoTokensAreValidAtOnce() async throws {
        try await WebFixture.run(paths) { settings in
            (settings.policy.adminToken, settings.policy.previousAdminToken) = ("new", "old")
        } _: { web async throws in
            for (token, status) in [("new", 200), ("old", 200), ("other", 401), ("", 401)] {
                #expect(try await web.request("GET", "/cache", headers: ["Authorization: Bearer \(token)"]).status == status)
            }
        }
        try await WebFixture.run(paths, { $0.policy.previousAdminToken = "old" }) { web async throws in
            #expect(try await web.request("GET", "/cache", headers: ["Authorization: Bearer old"]).status == 404)
        }
    }
}
