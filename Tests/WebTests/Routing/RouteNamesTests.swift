import Testing

@testable import Web

@Suite("Routes have names in the metrics") struct RouteNamesTests {
    /// The route before is remembered, and must not be taken for another's.
    @Test func theRouteOfATargetDoesNotDependOnThePreviousOne() {
        var names = RouteNames(mounts: ["pictures", "exactly-16-bytes"])
        let routes = [
            ("/mp4?url=x", "mp4"), ("/object/a.mp4", "object"), ("/", "home"), ("/pictures/a", "mount"), ("/nothing", "other"),
            ("", "other"),
            ("/a-segment-longer-than-sixteen-bytes", "other"), ("/mp4/x", "mp4"),
            ("/exactly-16-bytes/a", "mount"), ("/exactly-16-bytes2/a", "other"), ("/exactly-16-bytes,width=1", "mount"),
        ]
        for first in routes {
            for second in routes {
                for (target, name) in [first, second, second, first] {
                    let index = Array(target.utf8).withUnsafeBytes { names.index(of: $0) }
                    #expect(names.names[index] == name, "\(target) after \(first.0)")
                }
            }
        }
    }
}
