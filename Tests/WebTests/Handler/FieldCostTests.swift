import Fetch
import Glibc
import SystemIO
import TestSupport
import Testing

@testable import HTTP
@testable import Web

/// Clients choose the length of fields, and an event loop serves many clients.
///
/// Measures the processor time of what an event loop does with a request, so that other tests do not count, and compares it with a
/// walk over as many bytes in the same build, so that the machine does not count either. Work for each byte and each entry stays
/// below the bound; work that grows with the square of the length exceeds it by far.
@Suite("No field of a request takes an event loop long", .timeLimit(.minutes(10))) struct FieldCostTests {
    /// Every field that the program reads.
    private static let fields = [
        "Accept", "Authorization", "CDN-Loop", "Connection", "Content-Type", "Expect", "Forwarded", "If-Match",
        "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Last-Event-ID", "Prefer", "Priority", "Range",
        "Referer", "Sec-CH-DPR", "Sec-CH-Viewport-Width", "Sec-CH-Width", "Transfer-Encoding", "User-Agent",
        "X-Forwarded-For", "X-Forwarded-Proto", "X-Request-Id", "traceparent", "tracestate",
    ]
    private static let fillers = ["a,", "1.2.3.4, ", ";a=\"\\\"", "-0"]
    private static let length = 30_000
    private static let bound = 24.0

    private let walked = [UInt8](repeating: UInt8(ascii: ","), count: length)

    /// The processor time of the calling thread that `body` takes, in walks over `length` bytes: the least ratio of some attempts.
    private func cost(_ body: () -> Void) -> Double {
        func time(_ body: () -> Void) -> Duration {
            func now() -> Duration {
                var time = timespec()
                clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
                return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
            }
            let start = now()
            body()
            return now() - start
        }
        var best = Double.infinity
        for _ in 0..<10 where best > Self.bound {
            var sum = 0
            let walk = time { for byte in walked { sum &+= Int(byte) } }
            best = min(best, time(body) / walk)
        }
        return best
    }

    @Test(arguments: [ForwardedField.xForwardedFor, .forwarded]) func aLongFieldIsReadQuickly(_ field: ForwardedField)
        async throws
    {
        let gif = GIFBuilder.animation(frames: 2)
        let entries = try ["10.0.0.0/8", "1.2.3.4"].map { try #require(ClientPattern($0)) }
        let proxies = TrustedProxies(ClientList(entries), field)
        try await WebFixture.run(["/a.gif": { _ in .ok(gif) }]) {
            $0.policy.adminToken = "secret"
            var mount = Mount(origin: try SourceURL("http://a.test/"))
            mount.negotiates = true
            $0.policy.mounts = ["media": mount]
        } _: { web async throws in
            let hit = web.target("mp4", "/a.gif")
            #expect(try await web.request("GET", hit).status == 200)
            let requests = [
                "GET \(hit)", "GET /object/\(String(repeating: "0", count: 64)).mp4", "POST /mp4", "GET /metrics",
                "GET /status/\(String(repeating: "0", count: 32))", "GET /html,speed=x/http://a.test/",
                "GET /mp4,width=auto/http://a.test/a.gif", "GET /media/a.gif", "GET /html/http://a.test/a.gif", "OPTIONS /mp4",
            ]
            for name in Self.fields {
                for filler in Self.fillers {
                    let prefix = name == "Content-Type" ? "multipart/form-data;" : name == "Range" ? "bytes=" : ""
                    let value = prefix + String(repeating: filler, count: Self.length / filler.utf8.count)
                    for request in requests {
                        let text = "\(request) HTTP/1.1\r\nHost: a.test\r\n\(name): \(value)\r\n\r\n"
                        let took = Array(text.utf8).withUnsafeBytes { bytes in
                            cost { serve(bytes, web.handler, proxies) }
                        }
                        #expect(took <= Self.bound, "\(name) of “\(filler)” with \(request): \(took) walks")
                    }
                }
            }
        }
    }

    /// Parses a request, and has it answered as far as an event loop does that.
    private func serve(_ bytes: UnsafeRawBufferPointer, _ handler: WebHandler, _ proxies: TrustedProxies) {
        var head = RequestHead()
        guard (try? RequestHeadParser().parse(bytes, into: &head)) == true else { return }
        let origin = proxies.origin(peer: IPAddress("10.0.0.1"), head: head)
        withUnsafePointer(to: head) {
            let request = HTTPRequest(head: $0, generatedID: 1, origin: origin)
            _ = request.scheme
            guard case .now(let response) = handler.respond(to: request), case .resource(let resource) = response.body else {
                return
            }
            _ = Selection(head: head, validators: resource.validators, length: resource.length, now: 0)
        }
    }

    @Test(arguments: ["a", "%41", "%C3%BC", ",", "&", "/", "..", "="])
    func aLongTargetIsParsedQuickly(_ filler: String) throws {
        var mount = Mount(origin: try SourceURL("https://cdn.test/"))
        mount.query = .forward
        mount.negotiates = true
        let parser = RouteParser(mounts: ["media": mount])
        let text = String(repeating: filler, count: 16_000 / filler.utf8.count)
        for start in [
            "/", "/x/", "/mp4,", "/mp4/", "/mp4/http://a.test/", "/mp4/http%3A%2F%2Fa.test%2F", "/mp4?url=", "/mp4?", "/media/",
            "/media/a.gif?", "/object/", "/status/", "/prewarm/", "/oembed?url=",
        ] {
            let took = cost {
                _ = try? parser.parse(start + text)
                _ = parser.namesPage(start + text)
                _ = parser.namesNegotiation(start + text)
            }
            #expect(took <= Self.bound, "\(start) and “\(filler)”: \(took) walks")
        }
    }
}
