import Foundation
import TestSupport
import Testing

@Suite("Faulty origins end in the documented errors", .timeLimit(.minutes(10))) struct OriginFaultTests {
    /// One frame of noise: the first half of the file holds no whole frame, and is shown as far as it goes.
    private static let gif = GIFBuilder.noise(frames: 1, width: 64, height: 64)

    /// Status and code of every fault; nil where the request succeeds in spite of it.
    private static let expected: [String: (status: Int, code: String)?] = [
        "no-answer": (504, "source_timeout"), "half-a-head": (504, "source_timeout"), "half-a-body": (504, "source_timeout"),
        "a-byte-a-second": (504, "source_timeout"), "late": nil,
        "length-too-small": nil, "length-too-large": (502, "source_failed"), "length-huge": (422, "too_large"),
        "length-negative": (502, "source_failed"), "length-twice": (502, "source_failed"), "endless": (422, "too_large"),
        "chunk-without-size": (502, "source_failed"), "chunk-cut": (502, "source_failed"),
        "reset-in-the-body": (502, "source_failed"), "reset-at-once": (502, "source_failed"), "no-head": (502, "source_failed"),
        "empty": (415, "not_an_animation"), "no-content": (502, "source_failed"), "part-unasked": (502, "source_failed"),
        "not-modified-unasked": (502, "source_failed"), "status-403": (502, "source_failed"),
        "status-404": (404, "source_not_found"), "status-410": (410, "source_gone"), "status-500": (502, "source_failed"),
        "status-502": (502, "source_failed"), "status-429": (502, "source_failed"), "status-503": (502, "source_failed"),
        "every-second-time": (502, "source_failed"),
        "type-html": nil, "type-missing": nil, "gzip-unasked": (502, "source_failed"), "gzip-endless": (502, "source_failed"),
        "field-of-a-megabyte": (502, "source_failed"), "fields-by-thousands": (502, "source_failed"),
        "line-break-in-a-field": nil, "interim-answers": (502, "source_failed"), "redirect-to-itself": (502, "source_failed"),
        "redirects": nil, "another-each-time": nil, "with-a-tag": nil,
    ]

    /// An endless body that does not decompress may exceed the limit first.
    private static let alternatives: [String: (status: Int, code: String)] = ["gzip-endless": (422, "too_large")]

    private struct Document: Decodable {
        var code: String
    }

    private func origin() throws -> LoopbackOrigin {
        let faults = OriginFault.all(of: Self.gif)
        return try LoopbackOrigin(Dictionary(uniqueKeysWithValues: faults.map { ("/\($0.name)", $0.handler) }))
    }

    @Test func everyFaultEndsInItsErrorInTimeAndStoresNothing() throws {
        let origin = try origin()
        defer { origin.stop() }
        // One client alone would get a part of the fetches of a host.
        let server = try GifreelProcess(["sources.timeout=2s", "server.trusted_proxies=127.0.0.1"])
        let names = OriginFault.all(of: Self.gif).map(\.name)
        #expect(names.count == 40 && Set(names) == Set(Self.expected.keys))
        let answers = try atOnce(names.count) { index in
            let began = ContinuousClock.now
            let client = "X-Forwarded-For: 192.0.2.\(index)"
            return (try server.mp4(origin.url("/" + names[index]), headers: [client]), began.duration(to: .now))
        }
        for (name, (answer, time)) in zip(names, answers) {
            guard var expected = Self.expected[name] else { continue }
            if let other = Self.alternatives[name], answer.status == other.status { expected = other }
            #expect(answer.status == expected?.status ?? 200, "\(name): \(answer.text)")
            // Nothing here may last as long as its origin would like; the machine may be busy.
            #expect(time < .seconds(30), "\(name)")
            if let expected {
                let code = try JSONDecoder().decode(Document.self, from: Data(answer.body)).code
                #expect(code == expected.code, "\(name): \(answer.text)")
                #expect(!answer.text.contains("127.0.0.1") && !answer.text.contains("Evil"), "\(name)")
            } else {
                #expect(try MP4Boxes(answer.body).durations == [10], "\(name)")
            }
        }
        // All that succeeded brought the same GIF but two: one had a byte more, and one broke off.
        #expect(server.storedObjects().count == 3)
        #expect(try server.request("GET", "/readyz").status == 200)
    }

    @Test func anEndlessBodyTakesNoMemory() throws {
        let origin = try origin()
        defer { origin.stop() }
        let server = try GifreelProcess()
        origin.on("/a.gif", .ok(Self.gif))
        #expect(try server.mp4(origin.url("/a.gif")).status == 200)
        let before = try server.memory("VmHWM")
        #expect(try server.mp4(origin.url("/endless")).status == 422)
        #expect([422, 502].contains(try server.mp4(origin.url("/gzip-endless")).status))
        let after = try server.memory("VmHWM")
        #expect(after - before < 32 << 20, "\(before) to \(after) bytes")
    }

    @Test(arguments: ["status-500", "status-404", "empty", "length-too-large", "reset-at-once"])
    func aSourceThatFailsIsNotAskedByEveryVisitor(fault: String) throws {
        let origin = try origin()
        defer { origin.stop() }
        let server = try GifreelProcess()
        let (began, url) = (ContinuousClock.now, origin.url("/" + fault))
        let statuses = try atOnce(8) { _ in
            var client = try RawHTTPClient(port: server.port)
            var statuses = Set<Int>()
            for _ in 0..<125 { statuses.insert(try client.request("GET", "/mp4/\(url)").status) }
            return statuses
        }
        #expect(Set(statuses) == [[Self.expected[fault]??.status ?? 0]])
        // Once, and once more for each time that what is remembered was over meanwhile: after five seconds at the soonest.
        let most = 1 + Int(began.duration(to: .now) / .seconds(5))
        #expect((1...most).contains(origin.count("/" + fault)))
    }
}
