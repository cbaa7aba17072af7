import Sandbox
import Testing

@testable import Web

@Suite("The field Priority gives the urgency of a request") struct PriorityFieldTests {
    @Test(
        arguments: [
            (nil, 3), ("", 3), ("u=0", 0), ("u=7, i", 7), ("i, u=5", 5), ("u=5;x=1", 5), ("u=1,u=6", 6), ("u=9", 3),
            ("u=-1", 3),
            ("u=a", 3), ("x=1", 3),
        ] as [(String?, Int)])
    func urgencyIsReadFromThePriorityField(_ value: String?, _ level: Int) {
        #expect(PriorityField.urgency(value).level == level)
    }
}
