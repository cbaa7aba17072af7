import Foundation
import TestSupport
import Testing

@testable import Renditions
@testable import Web

@Suite("Facts have fingerprints on request", .timeLimit(.minutes(10)))
struct FingerprintTests {
    private static let gif = GIFBuilder.noise(frames: 3, width: 64, height: 48)

    private func run(_ body: (WebFixture) async throws -> Void) async throws {
        let gif = Self.gif
        try await WebFixture.run(["/a.gif": { _ in .ok(gif) }], { _ in }, body)
    }

    @Test func flashesAreFactsOfTheirOwn() async throws {
        try await run { web async throws in
            let facts = try await web.request("GET", web.target("json,facts=flashes", "/a.gif")).json()
            #expect(facts["fingerprints"] == nil)
            // Smaller than a quarter of ten degrees.
            let flashes = try #require(facts["flashes"] as? [String: Any])
            #expect(flashes["general"] as? Int == 0 && flashes["red"] as? Int == 0 && flashes.count == 2)
        }
    }

    @Test func onlyARequestThatNamesThemGetsThem() async throws {
        try await run { web async throws in
            let plain = try await web.request("GET", web.target("json", "/a.gif"))
            #expect(try plain.status == 200 && plain.json()["fingerprints"] == nil)
            let facts = try await web.request("GET", web.target("json,facts=fingerprints", "/a.gif"))
            let list = try #require(try facts.json()["fingerprints"] as? [[String: Any]])
            #expect(list.map { $0["frame"] as? Int } == [0, 1, 2])
            #expect(list.allSatisfy { ($0["pdq"] as? String)?.utf8.count == 64 && $0["quality"] as? Int == 100 })
            var other = try facts.json()
            other["fingerprints"] = nil
            #expect(NSDictionary(dictionary: try plain.json()) == NSDictionary(dictionary: other))
        }
    }

    @Test func bothDocumentsAreStored() async throws {
        try await run { web async throws in
            for target in [web.target("json", "/a.gif"), web.target("json,facts=fingerprints", "/a.gif")] {
                #expect(try await web.request("GET", target)["cache-status"] == "gifreel; fwd=miss; stored")
                #expect(try await web.request("GET", target)["cache-status"] == "gifreel; hit")
            }
            let query = try await web.request("GET", "/json?facts=fingerprints&url=\(web.origin.url("/a.gif"))")
            #expect(query["cache-status"] == "gifreel; hit")
        }
    }

    @Test func theyAreThoseOfTheBytesForAnUpload() async throws {
        try await run { web async throws in
            let upload = try await web.request("POST", "/json?facts=fingerprints", body: Self.gif)
            let fetched = try await web.request("GET", web.target("json,facts=fingerprints", "/a.gif"))
            let lists = try [upload, fetched].map { try #require(try $0.json()["fingerprints"] as? NSArray) }
            #expect(lists[0] == lists[1] && lists[0].count == 3)
        }
    }

    @Test func anotherWordIsRefused() async throws {
        try await run { web async throws in
            let response = try await web.request("GET", web.target("json,facts=prints", "/a.gif"))
            #expect(response.status == 400 && response.detail == "The option “facts” must be fingerprints or flashes.")
        }
    }

    @Test func aPresetCannotHaveThem() {
        var presets = RenditionPresets()
        #expect(throws: RenditionPresets.Invalid.self) {
            try presets.add("a", [.init(name: "facts", value: "fingerprints")])
        }
    }
}
