import Renditions
import Synchronization
import SystemIO
import Telemetry
import TestSupport
import Testing

@testable import Web

@Suite("Token buckets per client network") struct RateLimiterTests {
    private final class Seconds: Sendable {
        let value = Mutex<Double>(1000)

        var clock: TimeSource {
            TimeSource(unixSeconds: { 0 }, monotonicNanoseconds: { [self] in UInt64(value.withLock { $0 } * 1e9) })
        }

        func pass(_ seconds: Double) { value.withLock { $0 += seconds } }
    }

    private let time = Seconds()

    private func client(_ address: String) throws -> ClientNetwork {
        ClientNetwork(try #require(IPAddress(address)))
    }

    @Test func aBurstIsFreeAndThenTokensComeBackOneByOne() throws {
        let limiter = RateLimiter(RateLimit(perMinute: 6, burst: 3), clock: time.clock)
        let client = try client("192.0.2.1")
        #expect((0..<3).map { _ in limiter.take(client) } == [nil, nil, nil])
        #expect(limiter.take(client) == 10)
        time.pass(9.5)
        #expect(limiter.take(client) == 1)
        time.pass(0.5)
        #expect(limiter.take(client) == nil)
        #expect(limiter.take(client) == 10)
        // A refusal costs nothing, and no pause saves up more than a burst.
        time.pass(100_000)
        #expect((0..<4).map { _ in limiter.take(client) } == [nil, nil, nil, 10])
    }

    @Test func aTokenThatIsGivenBackIsNotUsed() throws {
        let limiter = RateLimiter(RateLimit(perMinute: 6, burst: 2), clock: time.clock)
        let allowance = limiter.allowance(for: try client("192.0.2.1"))
        for _ in 0..<5 {
            #expect(allowance.take(true) == nil)
            allowance.giveBack()
        }
        #expect((0..<3).map { _ in allowance.take(true) } == [nil, nil, 10])
    }

    @Test func clientsDoNotCountForOneAnother() throws {
        let limiter = RateLimiter(RateLimit(perMinute: 1, burst: 1), clock: time.clock)
        for address in ["192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8:0:1::1", "::ffff:192.0.2.3"] {
            #expect(limiter.take(try client(address)) == nil, "\(address)")
        }
        #expect(limiter.take(try client("192.0.2.1")) == 60)
        // One machine has a /64 to itself; an IPv4 address is the same on an IPv6 socket.
        #expect(limiter.take(try client("2001:db8::ffff:1:2:3")) == 60)
        #expect(limiter.take(try client("192.0.2.3")) == 60)
    }

    @Test func bytesThatAreUsedAlreadyAreOwed() throws {
        let limiter = RateLimiter(RateLimit(perMinute: 600_000_000, burst: 600_000_000), clock: time.clock)
        let client = try client("192.0.2.1")
        #expect(limiter.secondsUntilRepaid(by: client) == nil)
        limiter.charge(client, 600_000_000)
        #expect(limiter.secondsUntilRepaid(by: client) == nil)
        limiter.charge(client, 100_000_000)
        #expect(limiter.secondsUntilRepaid(by: client) == 10)
        time.pass(10)
        #expect(limiter.secondsUntilRepaid(by: client) == nil)
        // No client waits for more than an hour.
        for _ in 0..<3 { limiter.charge(client, .max) }
        #expect(limiter.secondsUntilRepaid(by: client) == 3600)
        #expect(limiter.secondsUntilRepaid(by: try self.client("192.0.2.2")) == nil)
    }

    @Test func aRaisedLimitEndsRefusals() throws {
        let limiter = RateLimiter(RateLimit(perMinute: 1, burst: 30), clock: time.clock)
        let client = try client("192.0.2.1")
        #expect((0..<31).map { _ in limiter.take(client) }.last == 60)
        limiter.setLimit(RateLimit(perMinute: 6000, burst: 100))
        #expect(limiter.take(client) == 1)
        time.pass(0.5)
        #expect((0..<50).allSatisfy { _ in limiter.take(client) == nil } && limiter.take(client) == 1)
        // The same limit again, as by a reload of another setting, gives no tokens.
        limiter.setLimit(RateLimit(perMinute: 6000, burst: 100))
        #expect(limiter.take(client) == 1)
        limiter.setLimit(RateLimit(perMinute: 1, burst: 2))
        time.pass(60)
        #expect((0..<3).map { _ in limiter.take(client) } == [nil, nil, 60])
    }

    @Test func aRaisedLimitOfAKeyEndsRefusals() throws {
        let limits = KeyLimits(clock: time.clock, factory: PrometheusRegistry(MetricFamily.instruments))
        func take(_ rate: RateLimit) -> Int? {
            limits.allowance(SigningKey(secret: "a", name: "blog", rate: rate), otherwise: .unlimited).take(true)
        }
        let slow = RateLimit(perMinute: 1, burst: 30)
        #expect((0..<31).map { _ in take(slow) }.last == 60)
        let fast = RateLimit(perMinute: 6000, burst: 100)
        #expect(take(fast) == 1)
        time.pass(0.5)
        #expect((0..<50).allSatisfy { _ in take(fast) == nil } && take(fast) == 1)
    }

    @Test func aRaisedLimitOfBytesEndsRefusals() throws {
        let limiter = RateLimiter(RateLimit(perMinute: 1 << 20, burst: 1 << 20), clock: time.clock)
        let client = try client("192.0.2.1")
        for _ in 0..<2 { limiter.charge(client, 1 << 30) }
        #expect(limiter.secondsUntilRepaid(by: client) == 3600)
        limiter.setLimit(RateLimit(perMinute: 1 << 20, burst: 1 << 20))
        #expect(limiter.secondsUntilRepaid(by: client) == 3600)
        // A lower limit, such as one against this client, does not end its refusals.
        limiter.setLimit(RateLimit(perMinute: 1 << 19, burst: 1 << 19))
        #expect(limiter.secondsUntilRepaid(by: client) == 3600)
        limiter.setLimit(RateLimit(perMinute: 1 << 40, burst: 1 << 40))
        #expect(limiter.secondsUntilRepaid(by: client) == nil)
    }

    @Test func aFullTableForgetsTheFullestBucket() throws {
        let limiter = RateLimiter(RateLimit(perMinute: 60, burst: 10), sets: 1, clock: time.clock)
        let heavy = try client("192.0.2.1")
        for _ in 0..<10 { _ = limiter.take(heavy) }
        #expect(limiter.take(heavy) != nil)
        for number in 0..<1000 { _ = limiter.take(try client("198.51.100.\(number % 250)")) }
        #expect(limiter.take(heavy) != nil)
    }

    @Test func clientsWithoutAnAddressAreNotLimited() throws {
        let limiter = RateLimiter(RateLimit(perMinute: 1, burst: 1), clock: time.clock)
        let unknown = limiter.allowance(for: nil)
        for _ in 0..<5 { #expect(throws: Never.self) { try unknown.use() } }
        let known = limiter.allowance(for: try client("192.0.2.1"))
        #expect(throws: Never.self) { try known.use() }
        #expect(throws: RenditionError.rateLimited(retryAfter: 60)) { try known.use() }
    }
}
