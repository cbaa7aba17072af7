import Foundation
import TestSupport
import Testing

@Suite("Pages of other origins load gifreel.js") struct PageScriptTests {
    @Test func theScriptIsServedToEveryOriginAndValidated() throws {
        let server = try GifreelProcess(["pages.home=false"])
        let answer = try server.request("GET", "/gifreel.js")
        #expect(answer.status == 200 && answer["content-type"] == "text/javascript; charset=utf-8")
        #expect(answer["access-control-allow-origin"] == "*" && answer["cross-origin-resource-policy"] == "cross-origin")
        #expect(answer["cache-control"] == "public, max-age=3600, stale-while-revalidate=86400")
        let tag = try #require(answer["etag"])
        #expect(try server.request("GET", "/gifreel.js", headers: ["If-None-Match: \(tag)"]).status == 304)
        #expect(try server.request("POST", "/gifreel.js").status == 405)
        #expect(try server.request("GET", "/gifreel.js/x").status == 404)
    }

    @Test func theScriptHasAtMostFourKilobytesWhenCompressedAndItsModuleTwo() throws {
        let server = try GifreelProcess()
        for (path, limit) in [("/gifreel.js", 4096), ("/video.js", 2048)] {
            let script = try server.request("GET", path)
            #expect(script.status == 200 && script["access-control-allow-origin"] == "*")
            let compressed = try ChildProcess(
                URL(fileURLWithPath: "/usr/bin/env"), ["gzip", "-9", "-c"], input: script.body
            ).finish()
            #expect(compressed.code == 0)
            #expect(compressed.bytes.count <= limit && compressed.bytes.count > 500, "\(path): \(compressed.bytes.count)")
        }
    }
}
