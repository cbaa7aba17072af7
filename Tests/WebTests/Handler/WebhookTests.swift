import Digests
import Fetch
import Foundation
import Glibc
import HTTPClient
import Renditions
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Web

@Suite("The outcome of a request that does not wait is sent to its callback, signed", .timeLimit(.minutes(10)))
struct WebhookTests {
    private static let gif = GIFBuilder.animation(frames: 4, width: 40, height: 30)
    private static let prefer = ["Prefer: respond-async"]
    private static let key = "0123456789abcdef0123456789abcdef"

    /// A server on loopback that records the requests it gets, with their bodies.
    private final class Receiver: Sendable {
        struct Delivery: Sendable {
            let head: String
            let body: [UInt8]

            func field(_ name: String) -> String? {
                head.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name.lowercased() + ": ") }
                    .map { String($0.dropFirst(name.count + 2)) }
            }

            func json() throws -> [String: Any] {
                try #require(try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any])
            }
        }

        let port: Int
        private let listener: Int32
        private let statuses: Mutex<[Int]>
        private let received = Mutex<[Delivery]>([])

        /// - Parameters:
        ///   - statuses: Those of the first answers; 204 after them.
        ///   - host: The last byte of the address in 127.0.0.0/24.
        init(_ statuses: [Int] = [], host: UInt32 = 1) throws {
            self.statuses = Mutex(statuses)
            listener = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = (0x7f00_0000 + host).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let number = listener
            let isListening = withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(number, $0, length) == 0 && listen(number, 16) == 0 && getsockname(number, $0, &length) == 0
                }
            }
            try #require(isListening)
            port = Int(UInt16(bigEndian: address.sin_port))
            Thread { [self] in serve() }.start()
        }

        var all: [Delivery] { received.withLock { $0 } }

        func stop() {
            shutdown(listener, Int32(SHUT_RDWR))
            close(listener)
        }

        private func serve() {
            while true {
                let connection = accept(listener, nil, nil)
                if connection < 0 { return }
                answer(connection)
                close(connection)
            }
        }

        private func answer(_ connection: Int32) {
            var bytes: [UInt8] = []
            var chunk = [UInt8](repeating: 0, count: 4096)
            while true {
                let text = String(decoding: bytes, as: UTF8.self)
                if let end = text.firstRange(of: "\r\n\r\n") {
                    let head = String(text[..<end.lowerBound])
                    let length = head.firstMatch(of: /[Cc]ontent-[Ll]ength: (\d+)/).flatMap { Int($0.1) } ?? 0
                    let start = head.utf8.count + 4
                    if bytes.count >= start + length {
                        received.withLock { $0.append(Delivery(head: head, body: Array(bytes[start...]))) }
                        break
                    }
                }
                let count = recv(connection, &chunk, chunk.count, 0)
                if count <= 0 { return }
                bytes += chunk[..<count]
            }
            let status = statuses.withLock { $0.isEmpty ? 204 : $0.removeFirst() }
            let answer = "HTTP/1.1 \(status) Status\r\nContent-Length: 0\r\nLocation: /other\r\nConnection: close\r\n\r\n"
            _ = answer.withCString { send(connection, $0, strlen($0), Int32(MSG_NOSIGNAL)) }
        }
    }

    private func run(
        _ receiver: Receiver, _ configure: @escaping (inout WebFixture.Settings) -> Void = { _ in },
        _ body: (WebFixture, String) async throws -> Void
    ) async throws {
        defer { receiver.stop() }
        let pattern = try #require(SourcePattern("127.0.0.1:\(receiver.port)/hooks"))
        try await WebFixture.run(["/a.gif": { _ in .ok(Self.gif) }]) {
            $0.webhooks = Webhooks.Policy(allow: [pattern], key: Self.key)
            $0.webhookLimits.backoff = Backoff(first: .milliseconds(1), longest: .milliseconds(1))
            $0.policy.adminToken = "secret"
            configure(&$0)
        } _: { web async throws in
            try await body(web, PercentEncoding.encode("http://127.0.0.1:\(receiver.port)/hooks/x"))
        }
    }

    @Test func theFinalStatusIsSentOnceWithASignature() async throws {
        let receiver = try Receiver()
        try await run(receiver) { web, callback in
            let target = "/mp4,callback=\(callback),width=20/" + web.origin.url("/a.gif")
            let accepted = try await web.request("GET", target, headers: Self.prefer)
            #expect(accepted.status == 202)
            try await waitUntil("the webhook") { !receiver.all.isEmpty }
            try await waitUntil("its end") { web.webhooks.pending == 0 }
            let delivery = try #require(receiver.all.first)
            #expect(delivery.head.hasPrefix("POST /hooks/x HTTP/1.1\r\n") && receiver.all.count == 1)
            #expect(delivery.field("Content-Type") == "application/json" && delivery.field("CDN-Loop") == "gifreel")
            #expect(delivery.field("Gifreel-Status") == accepted["location"])
            let time = try #require(delivery.field("Gifreel-Timestamp"))
            #expect(abs((Int(time) ?? 0) - currentSeconds()) < 3600)
            let code = HMACSHA256(key: Self.key.utf8).code(for: Array("\(time).".utf8) + delivery.body)
            #expect(delivery.field("Gifreel-Signature") == "v1=\(Hex.encode(code))")
            let status = try delivery.json()
            // The callback is no part of the address and of the cache entry.
            let url = try #require(status["url"] as? String)
            #expect(status["state"] as? String == "done" && url == "/mp4,width=20/" + web.origin.url("/a.gif"))
            #expect(try await web.request("GET", url)["cache-status"] == "gifreel; hit")
            // Nothing is sent for an answer that did not have to be waited for.
            #expect(try await web.request("GET", target, headers: Self.prefer).status == 200)
            #expect(web.webhooks.pending == 0)
        }
    }

    @Test func theAddressOfAPageKeepsWhatThePageShowsWithoutAVideo() async throws {
        let receiver = try Receiver()
        try await run(receiver) { web, callback in
            let target = "/html,callback=\(callback),on_error=original/" + web.origin.url("/a.gif")
            #expect(try await web.request("GET", target, headers: Self.prefer).status == 202)
            try await waitUntil("the webhook") { !receiver.all.isEmpty }
            let status = try #require(receiver.all.first).json()
            #expect(status["url"] as? String == "/html,on_error=original/" + web.origin.url("/a.gif"))
            // The page does not name the callback either.
            let page = try await web.request("GET", target, headers: Self.prefer)
            #expect(page.status == 200 && !page.text.contains("callback"))
        }
    }

    @Test func aFailureAndAnUploadAreToldToo() async throws {
        let receiver = try Receiver()
        try await run(receiver) { web, callback in
            let missing = "/mp4?callback=\(callback)&url=" + PercentEncoding.encode(web.origin.url("/missing.gif"))
            #expect(try await web.request("GET", missing, headers: Self.prefer).status == 202)
            try await waitUntil("the first webhook") { receiver.all.count == 1 }
            let problem = try #require(try receiver.all[0].json()["problem"] as? [String: Any])
            #expect(problem["code"] as? String == "source_not_found")
            let headers = Self.prefer + ["Content-Type: image/gif"]
            #expect(try await web.request("POST", "/mp4?callback=\(callback)", headers: headers, body: Self.gif).status == 202)
            try await waitUntil("the second webhook") { receiver.all.count == 2 }
            #expect((try receiver.all[1].json()["url"] as? String)?.hasPrefix("/object/") == true)
        }
    }

    @Test(arguments: [([500, 429, 503], 4, "delivered"), ([404], 1, "failed"), ([302], 1, "failed"), ([400], 1, "failed")])
    func whatMayPassIsRepeated(_ statuses: [Int], _ attempts: Int, _ result: String) async throws {
        let receiver = try Receiver(statuses)
        try await run(receiver) { web, callback in
            let target = "/mp4,callback=\(callback)/" + web.origin.url("/a.gif")
            #expect(try await web.request("GET", target, headers: Self.prefer).status == 202)
            try await waitUntil("the attempts") { receiver.all.count == attempts && web.webhooks.pending == 0 }
            let metrics = try await web.request("GET", "/metrics", headers: ["Authorization: Bearer secret"]).text
            #expect(metrics.contains("gifreel_webhooks_total{result=\"\(result)\"} 1"), "\(metrics)")
        }
    }

    @Test func attemptsAreBounded() async throws {
        let receiver = try Receiver(Array(repeating: 500, count: 100))
        try await run(receiver) {
            $0.webhookLimits.attempts = 3
        } _: { web, callback in
            let target = "/mp4,callback=\(callback)/" + web.origin.url("/a.gif")
            #expect(try await web.request("GET", target, headers: Self.prefer).status == 202)
            try await waitUntil("the attempts") { receiver.all.count == 3 && web.webhooks.pending == 0 }
        }
    }

    @Test func aChangeOfTheSettingsEndsTheAttempts() async throws {
        let receiver = try Receiver(Array(repeating: 500, count: 10_000))
        try await run(receiver) {
            $0.webhookLimits.attempts = 10_000
        } _: { web, callback in
            let target = "/mp4,callback=\(callback)/" + web.origin.url("/a.gif")
            #expect(try await web.request("GET", target, headers: Self.prefer).status == 202)
            try await waitUntil("the first attempt") { !receiver.all.isEmpty }
            web.webhooks.apply(Webhooks.Policy(allow: [try #require(SourcePattern("hooks.example"))], key: Self.key))
            try await waitUntil("the end of the attempts") { web.webhooks.pending == 0 }
            #expect(receiver.all.count < 10_000)
        }
    }

    @Test func otherReceiversAndRequestsThatWaitAreRefused() async throws {
        let receiver = try Receiver()
        try await run(receiver) { web, callback in
            let source = web.origin.url("/a.gif")
            for (text, words) in [
                ("http%3A%2F%2F127.0.0.1%3A\(receiver.port)%2Fother", "does not permit"),
                ("http%3A%2F%2Fevil.example%2Fhooks", "does not permit"),
                ("file%3A%2F%2F%2Fetc%2Fpasswd", "not an http or https URL"),
            ] {
                let answer = try await web.request("GET", "/mp4,callback=\(text)/" + source, headers: Self.prefer)
                #expect(
                    answer.status == 400 && answer.code == "bad_option" && answer.detail?.contains(words) == true, "\(text)")
            }
            let waiting = try await web.request("GET", "/mp4,callback=\(callback)/" + source)
            #expect(waiting.status == 400 && waiting.detail?.contains("Prefer: respond-async") == true)
            #expect(receiver.all.isEmpty && web.origin.count("/a.gif") == 0)
        }
    }

    /// The address decides when the connection is opened, whatever the pattern allows.
    @Test func aReceiverAtAForbiddenAddressGetsNothing() async throws {
        let receiver = try Receiver(host: 2)
        try await run(receiver) {
            $0.webhooks = Webhooks.Policy(allow: [.any], key: Self.key)
        } _: { web, _ in
            let callback = PercentEncoding.encode("http://127.0.0.2:\(receiver.port)/hooks/x")
            let target = "/mp4,callback=\(callback)/" + web.origin.url("/a.gif")
            #expect(try await web.request("GET", target, headers: Self.prefer).status == 202)
            try await waitUntil("the end of the attempt") {
                web.log.all.contains { $0.message == "webhook failed" && $0.metadata["cause"]?.isEmpty == false }
            }
            #expect(receiver.all.isEmpty)
            let metrics = try await web.request("GET", "/metrics", headers: ["Authorization: Bearer secret"]).text
            #expect(metrics.contains("gifreel_webhooks_total{result=\"failed\"} 1") && !metrics.contains("\"repeated\"} 1"))
        }
    }

    @Test func aSignatureCoversTheCallbackAndTheAddressIsSignedWithoutIt() async throws {
        let receiver = try Receiver()
        try await run(receiver) {
            $0.policy.signingKeys = SigningKeys([Self.key])
            $0.policy.options = .presets
        } _: { web, callback in
            let source = web.origin.url("/a.gif")
            let options = [QueryItem(name: "callback", value: "http://127.0.0.1:\(receiver.port)/hooks/x")]
            let signed = try #require(
                SigningKeys([Self.key]).signed("mp4", options, of: SourceURL(source), expires: nil))
            let signature = try #require(signed.first { $0.name == "sig" }?.value)
            let target = "/mp4,callback=\(callback),sig=\(signature)/" + source
            let other = target.replacing(callback, with: callback + "y")
            #expect(try await web.request("GET", other, headers: Self.prefer).code == "bad_signature")
            #expect(try await web.request("GET", target, headers: Self.prefer).status == 202)
            try await waitUntil("the webhook") { !receiver.all.isEmpty }
            let url = try #require(try receiver.all[0].json()["url"] as? String)
            #expect(url.contains("sig=") && !url.contains("callback"), "\(url)")
            #expect(try await web.request("GET", url)["cache-status"] == "gifreel; hit")
            // It makes no rendition of its own, so it needs no signature either.
            let unsigned = "/mp4,callback=\(callback)/" + source + "?2"
            #expect(try await web.request("GET", unsigned, headers: Self.prefer).status == 202)
        }
    }

    @Test func withoutStatusesACallbackIsRefused() async throws {
        let receiver = try Receiver()
        try await run(receiver) {
            $0.statuses = 0
        } _: { web, callback in
            let target = "/mp4,callback=\(callback)/" + web.origin.url("/a.gif")
            let answer = try await web.request("GET", target, headers: Self.prefer)
            #expect(answer.status == 400 && answer.code == "bad_option" && answer.detail?.contains("not available") == true)
        }
    }

    @Test func withoutAKeyOrReceiversThereAreNoWebhooks() async throws {
        try await WebFixture.run(["/a.gif": { _ in .ok(Self.gif) }]) { web async throws in
            let target = "/mp4,callback=http%3A%2F%2Fhooks.example/" + web.origin.url("/a.gif")
            let answer = try await web.request("GET", target, headers: Self.prefer)
            #expect(answer.status == 400 && answer.detail?.contains("not available") == true)
        }
    }
}
