import Testing

@testable import Fleet
@testable import Web

struct SharingStatusTests {
    @Test(
        arguments: [
            ("5000-1", 2.5), ("7499-9", 0.001), ("7500-0", 0), ("9000-0", 0), ("0-1", 0), ("0-0", 0),
        ] as [(String, Double)])
    func theLagOfANodeIsInSeconds(_ position: String, _ lag: Double) {
        let node = LiveNode("n", Array("1-0 \(position)".utf8))
        #expect(SharingStatus.Cluster.Member(node, latest: StreamID(7500, 0)).lag == lag)
    }
}
