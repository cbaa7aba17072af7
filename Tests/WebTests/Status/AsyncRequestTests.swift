import Foundation
import HTTP
import Renditions
import TestSupport
import Testing

@testable import Web

@Suite(
    "A request that prefers not to wait gets a status, which ends with the address of the rendition", .timeLimit(.minutes(10)))
struct AsyncRequestTests {
    private static let gif = GIFBuilder.animation(frames: 4, width: 40, height: 30)
    private static let prefer = ["Prefer: respond-async"]

    private func accepted(_ response: RawHTTPResponse) throws -> String {
        #expect(response.status == 202, "\(response.text)")
        #expect(response["preference-applied"] == "respond-async" && response["cache-control"] == "no-store")
        let path = try #require(response["location"])
        #expect(path.wholeMatch(of: /\/status\/[0-9a-f]{32}/) != nil, "\(path)")
        return path
    }

    private func state(_ web: WebFixture, _ path: String) async throws -> String {
        try #require(try await web.request("GET", path).json()["state"] as? String)
    }

    /// Waits for the end and returns the last document.
    private func end(_ web: WebFixture, _ path: String) async throws -> [String: Any] {
        try await waitUntil("the end of \(path)") { ["done", "failed"].contains(try await state(web, path)) }
        return try await web.request("GET", path).json()
    }

    @Test(arguments: ["mp4", "mp4,width=20", "jpg", "webm", "json", "html"])
    func aMissIsAcceptedAtOnceAndEndsAsAHit(_ format: String) async throws {
        let gate = try LoopbackGate()
        try await WebFixture.run(["/a.gif": { _ in .ok(Self.gif).after(gate) }]) { web async throws in
            let target = web.target(format, "/a.gif")
            let path = try accepted(try await web.request("GET", target, headers: Self.prefer))
            let before = try await web.request("GET", path)
            #expect(before["content-type"] == "application/json" && before["cache-control"] == "no-store")
            let members = try before.json()
            #expect(members["state"] as? String == "fetching" && members["url"] == nil && members["problem"] == nil)
            #expect(members["total_bytes"] is NSNull && members["queue_position"] is NSNull)
            #expect(try await web.request("HEAD", path).status == 200)
            gate.open()
            let last = try await end(web, path)
            #expect(last["state"] as? String == "done" && last["url"] as? String == target)
            #expect(last["fetched_bytes"] as? Int == Self.gif.count && last["total_bytes"] as? Int == Self.gif.count)
            if format.hasPrefix("mp4") { #expect(last["frames_done"] as? Int == 4 && last["frames_total"] as? Int == 4) }
            let hit = try await web.request("GET", target, headers: Self.prefer)
            #expect(hit.status == 200 && hit["preference-applied"] == nil && !hit.body.isEmpty)
            #expect(hit["cache-status"]?.hasPrefix("gifreel; hit") == true)
            #expect(web.origin.count("/a.gif") == 1)
        }
    }

    @Test func theBytesOfTheSourceAreCountedWhileTheyArrive() async throws {
        let gate = try LoopbackGate()
        let gif = GIFBuilder.noise(frames: 2, width: 100, height: 100)
        let half = gif.count / 2
        let head = Array("HTTP/1.1 200 OK\r\nContent-Length: \(gif.count)\r\n\r\n".utf8)
        let answer = LoopbackAnswer(
            steps: [.send(head + gif[..<half]), .wait(until: gate), .send(Array(gif[half...]))], keepsAlive: true)
        try await WebFixture.run(["/a.gif": { _ in answer }]) { web async throws in
            let target = web.target("mp4", "/a.gif")
            let path = try accepted(try await web.request("GET", target, headers: Self.prefer))
            try await waitUntil("half of the source") {
                let status = try await web.request("GET", path).json()
                return status["fetched_bytes"] as? Int == half && status["total_bytes"] as? Int == gif.count
            }
            #expect(try await state(web, path) == "fetching")
            gate.open()
            #expect(try await end(web, path)["state"] as? String == "done")
        }
    }

    @Test func theStatusOfAFailedFetchHasTheBytesThatHadArrived() async throws {
        let gate = try LoopbackGate()
        let gif = GIFBuilder.noise(frames: 2, width: 100, height: 100)
        let half = gif.count / 2
        let head = Array("HTTP/1.1 200 OK\r\nContent-Length: \(gif.count)\r\n\r\n".utf8)
        // The connection ends before the rest.
        let answer = LoopbackAnswer(steps: [.send(head + gif[..<half]), .wait(until: gate)])
        try await WebFixture.run(["/a.gif": { _ in answer }]) { web async throws in
            let path = try accepted(try await web.request("GET", web.target("mp4", "/a.gif"), headers: Self.prefer))
            try await waitUntil("half of the source") {
                try await web.request("GET", path).json()["fetched_bytes"] as? Int == half
            }
            gate.open()
            let last = try await end(web, path)
            #expect(last["state"] as? String == "failed")
            #expect(last["fetched_bytes"] as? Int == half && last["total_bytes"] as? Int == gif.count)
        }
    }

    @Test func aFailureIsTheProblemOfTheStatusAndThenOfTheRequest() async throws {
        try await WebFixture.run { web async throws in
            let target = web.target("mp4", "/missing.gif")
            let path = try accepted(try await web.request("GET", target, headers: Self.prefer))
            let last = try await end(web, path)
            #expect(last["state"] as? String == "failed" && last["url"] == nil)
            let problem = try #require(last["problem"] as? [String: Any])
            #expect(problem["code"] as? String == "source_not_found" && problem["status"] as? Int == 404)
            #expect(problem["title"] as? String == "Not Found" && problem["detail"] is String)
            // A remembered failure needs no waiting.
            let known = try await web.request("GET", target, headers: Self.prefer)
            #expect(known.status == 404 && known.code == "source_not_found")
        }
    }

    @Test func anUploadEndsWithTheAddressOfItsObject() async throws {
        try await WebFixture.run { web async throws in
            let headers = Self.prefer + ["Content-Type: image/gif"]
            let path = try accepted(try await web.request("POST", "/mp4", headers: headers, body: Self.gif))
            let last = try await end(web, path)
            let url = try #require(last["url"] as? String)
            #expect(url.hasPrefix("/object/") && last["fetched_bytes"] as? Int == Self.gif.count)
            let again = try await web.request("POST", "/mp4", headers: headers, body: Self.gif)
            #expect(again.status == 200 && again["content-location"] == url)
            #expect(try await web.request("GET", url).body == again.body)
        }
    }

    @Test func anUploadWhoseResultIsNotStoredFails() async throws {
        try await WebFixture.run([:]) {
            $0.minFreeBytes = 1 << 60
        } _: { web async throws in
            let headers = Self.prefer + ["Content-Type: image/gif"]
            let path = try accepted(try await web.request("POST", "/mp4", headers: headers, body: Self.gif))
            let last = try await end(web, path)
            #expect(last["state"] as? String == "failed" && last["url"] == nil)
            let problem = try #require(last["problem"] as? [String: Any])
            #expect(problem["code"] as? String == "overloaded" && problem["status"] as? Int == 503)
        }
    }

    @Test func leavingEndsTheFetchUnlessAnotherRequestWaits() async throws {
        let gate = try LoopbackGate()
        try await WebFixture.run(["/a.gif": { $0.number < 3 ? LoopbackAnswer.ok(Self.gif).after(gate) : .ok(Self.gif) }]) {
            web async throws in
            let target = web.target("mp4", "/a.gif")
            for number in 1...2 {
                let path = try accepted(try await web.request("GET", target, headers: Self.prefer))
                try await waitUntil("the fetch") { web.origin.count("/a.gif") == number }
                #expect(try await web.request("DELETE", path).status == 204)
                #expect(try await web.request("GET", path).code == "not_found")
                #expect(try await web.request("DELETE", path).status == 404)
            }
            // The flights of the first two fetches were cancelled, so a third one answers although the gate is closed.
            #expect(try await web.request("GET", target).status == 200)
            #expect(web.origin.count("/a.gif") == 3)
            web.origin.on("/b.gif", LoopbackAnswer.ok(Self.gif).after(gate))
            let other = web.target("mp4", "/b.gif")
            async let waiting = web.request("GET", other)
            try await waitUntil("the fetch") { web.origin.count("/b.gif") == 1 }
            let path = try accepted(try await web.request("GET", other, headers: Self.prefer))
            #expect(try await web.request("DELETE", path).status == 204)
            gate.open()
            #expect(try await waiting.status == 200)
            #expect(web.origin.count("/b.gif") == 1)
        }
    }

    @Test func aMissCountsForTheClientAsEver() async throws {
        try await WebFixture.run(["/a.gif": { _ in .ok(Self.gif) }]) {
            $0.policy.rateLimit = RateLimit(perMinute: 1, burst: 1)
        } _: { web async throws in
            let target = web.target("mp4", "/a.gif")
            let path = try accepted(try await web.request("GET", target, headers: Self.prefer))
            #expect(try await end(web, path)["state"] as? String == "done")
            let refused = try await web.request("GET", target + "?2", headers: Self.prefer)
            #expect(refused.status == 429 && refused.code == "rate_limited" && refused["retry-after"] != nil)
            #expect(try await web.request("GET", target, headers: Self.prefer).status == 200)
        }
    }

    @Test func oneClientGetsAQuarterOfTheStatuses() async throws {
        try await WebFixture.run(["/a.gif": { _ in .ok(Self.gif) }]) {
            $0.statuses = 8
        } _: { web async throws in
            let target = web.target("mp4", "/a.gif")
            let paths = [
                try accepted(try await web.request("GET", target + "?1", headers: Self.prefer)),
                try accepted(try await web.request("GET", target + "?2", headers: Self.prefer)),
            ]
            let refused = try await web.request("GET", target + "?3", headers: Self.prefer)
            #expect(refused.status == 429 && refused.code == "rate_limited" && refused["retry-after"] != nil)
            // Requests that wait are not affected, and a status that was left makes room.
            #expect(try await web.request("GET", target + "?3").status == 200)
            #expect(try await web.request("DELETE", paths[0]).status == 204)
            _ = try accepted(try await web.request("GET", target + "?4", headers: Self.prefer))
        }
    }

    @Test func withoutStatusesThePreferenceIsIgnored() async throws {
        try await WebFixture.run(["/a.gif": { _ in .ok(Self.gif) }]) {
            $0.statuses = 0
        } _: { web async throws in
            let answer = try await web.request("GET", web.target("mp4", "/a.gif"), headers: Self.prefer)
            #expect(answer.status == 200 && answer["preference-applied"] == nil)
        }
    }

    @Test func onlyThePreferenceOfThatNameCounts() {
        for values in [["respond-async"], ["wait=5, Respond-Async"], ["return=minimal", "respond-async; a=b"]] {
            #expect(namesAsync(values), "\(values)")
        }
        for values in [[], [""], ["respond-asynchronously"], ["wait=10"], ["\"respond-async\""], ["a=\"x, respond-async\""]] {
            #expect(!namesAsync(values), "\(values)")
        }
    }

    private func namesAsync(_ values: [String]) -> Bool {
        values.contains { withBytes(of: $0) { FieldList($0).names("respond-async") } }
    }

    @Test func otherMethodsAndIdsAreRefused() async throws {
        try await WebFixture.run { web async throws in
            for path in [
                "/status", "/status/", "/status/1", "/status/" + String(repeating: "g", count: 32),
                "/status/" + String(repeating: "0", count: 32), "/status/" + String(repeating: "+", count: 32),
            ] {
                let answer = try await web.request("GET", path)
                #expect(answer.status == 404 && answer.code == "not_found", "\(path)")
            }
            let answer = try await web.request("POST", "/status/" + String(repeating: "0", count: 32), body: [1])
            #expect(answer.status == 405 && answer["allow"] == "GET, HEAD, DELETE, OPTIONS")
        }
    }
}
