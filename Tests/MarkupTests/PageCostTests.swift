import Glibc
import Testing

@testable import Markup

/// Authors choose the markup of a page, and a site has many pages.
///
/// Compares the processor time for a page and for one eight times as long, so that neither the machine nor other tests count: work for
/// each byte takes about eight times as long, work that grows with the square of the length 64 times.
@Suite("The time for a page grows with its length and no faster", .timeLimit(.minutes(10))) struct PageCostTests {
    /// A kind of page, whose length is proportional to a count.
    struct Shape: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let count: Int
        let page: @Sendable (_ count: Int) -> String
    }

    static let shapes = [
        Shape(testDescription: "candidates and attributes", count: 100) {
            "<img srcset='\(String(repeating: "a.gif 1x, ", count: $0))' \((0..<$0).map { "a\($0)=b " }.joined())>"
        },
        Shape(testDescription: "different links that stay", count: 1000) {
            (0..<$0).map { "<img src=\($0).gif data-gifreel=off>" }.joined()
        },
        Shape(testDescription: "drawings and end tags of others", count: 1500) {
            String(repeating: "<svg>", count: $0) + String(repeating: "</math>", count: $0)
        },
        Shape(testDescription: "videos and end tags of others", count: 1500) {
            String(repeating: "<video>", count: $0) + String(repeating: "</audio>", count: $0)
        },
    ]

    @Test(arguments: shapes) func aPageOfHostileMarkupTakesNoLongerThanItsLength(_ shape: Shape) {
        func time(_ page: String) -> Duration {
            func now() -> Duration {
                var time = timespec()
                clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
                return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
            }
            let bytes = Array(page.utf8)
            let start = now()
            _ = PageRewriter.rewrite(bytes, base: "http://a.test/") { .replace(address: "/auto/\($0)") }
            return now() - start
        }
        let (short, long) = (shape.page(shape.count), shape.page(8 * shape.count))
        var growth = Double.infinity
        for _ in 0..<5 where growth > Self.bound { growth = min(growth, time(long) / time(short)) }
        #expect(growth <= Self.bound, "eight times the length takes \(growth) times as long")
    }

    private static let bound = 24.0
}
