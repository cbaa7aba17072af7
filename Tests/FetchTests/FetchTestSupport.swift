import Fetch
import Synchronization
import TestSupport
import Testing

/// GIFs as bytes.
enum TestGIF {
    /// A GIF of one pixel.
    static let dot: [UInt8] = [
        0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 1, 0, 1, 0, 0x80, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff,
        0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x3b,
    ]

    /// `count` bytes that begin as a GIF.
    static func large(_ count: Int) -> [UInt8] {
        dot + (dot.count..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    }
}

/// The gate of a fetch, closed until the test opens it.
final class TestGate: Sendable {
    private let state = Mutex((isOpen: false, asked: 0))
    let arriving = ArrivingSource()

    init() {
        arriving.setGate { [weak self] in
            self?.state.withLock { state in
                state.asked += 1
                return state.isOpen
            } ?? false
        }
    }

    /// How often the fetch has asked whether it may begin.
    var asked: Int { state.withLock { $0.asked } }

    func open() {
        state.withLock { $0.isOpen = true }
    }
}

/// Runs `body` with an origin and a fetcher that may fetch from it, and stops both. The fetcher waits so long that a busy machine,
/// or a test that holds up the origin, ends no fetch.
///
/// - Parameters:
///   - onlyItsPort: Whether only the ports 80, 443 and the origin's are allowed, instead of every port.
///   - change: Changes the configuration.
func withOrigin(
    onlyItsPort: Bool = false, _ change: (inout FetchConfiguration) -> Void = { _ in },
    _ body: (LoopbackOrigin, Fetcher) async throws -> Void
) async throws {
    let origin = try LoopbackOrigin()
    defer { origin.stop() }
    var configuration = FetchConfiguration()
    configuration.allowPrivate = [try #require(AddressException("127.0.0.1"))]
    configuration.connectTimeout = .seconds(60)
    configuration.timeout = .seconds(60)
    configuration.stallTimeout = .seconds(60)
    if onlyItsPort { configuration.ports = [80, 443, origin.port] } else { configuration.ports = .all }
    change(&configuration)
    let fetcher = try Fetcher(configuration: configuration)
    defer { fetcher.shutdown() }
    try await body(origin, fetcher)
}

extension Fetcher {
    /// Fetches a source. Throws if it has not changed.
    func source(_ url: String) async throws -> FetchedSource {
        guard case .fetched(let source) = try await fetch(SourceURL(url)) else {
            throw FetchError.failed(.status(304, retryAfter: nil))
        }
        return source
    }

    /// The error of a fetch; nil if it succeeds.
    func failure(_ url: String) async throws -> FetchError? {
        do {
            _ = try await source(url)
            return nil
        } catch let error as FetchError {
            return error
        }
    }
}

extension PortSet {
    static let all = PortSet([1...65_535])
}
