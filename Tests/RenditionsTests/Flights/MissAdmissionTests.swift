import Fetch
import Sandbox
import Testing

@testable import Renditions

@Suite("Admission of misses is bounded") struct MissAdmissionTests {
    private func origin(_ text: String = "https://a.test/") throws -> MissAdmission.Origin {
        MissAdmission.Origin(try SourceURL(text))
    }

    @Test func placesAreBoundedAndComeBackWithTheirHolders() {
        let admission = MissAdmission(jobs: 3, bytes: 1000)
        var places = (0..<3).map { _ in admission.admit(nil, bytes: 10, urgency: .visitor) }
        #expect(places.allSatisfy { $0 != nil } && !admission.hasRoom)
        #expect(admission.admit(nil, bytes: 10, urgency: .visitor) == nil)
        places.removeLast()
        #expect(admission.hasRoom && admission.load == (2, 20))
        places.append(admission.admit(nil, bytes: 10, urgency: .visitor))
        #expect(places.last != nil)
        places = []
        #expect(admission.load == (0, 0))
    }

    @Test func bytesAreBoundedByTheLargestGIFUntilTheSizeIsKnown() throws {
        let admission = MissAdmission(jobs: 100, bytes: 1000)
        let first = try #require(admission.admit(origin(), bytes: 600, urgency: .visitor))
        #expect(try admission.admit(origin(), bytes: 600, urgency: .visitor) == nil)
        first.settle(bytes: 100)
        let second = try admission.admit(origin(), bytes: 600, urgency: .visitor)
        #expect(second != nil && admission.load == (2, 700))
        withExtendedLifetime((first, second)) {}
    }

    @Test func oneGIFIsAlwaysAdmitted() {
        let admission = MissAdmission(jobs: 2, bytes: 10)
        let place = admission.admit(nil, bytes: 600, urgency: .visitor)
        #expect(place != nil && admission.admit(nil, bytes: 1, urgency: .visitor) == nil)
        withExtendedLifetime(place) {}
    }

    @Test func workThatNobodyWaitsForLeavesHalfOfThePlaces() {
        let admission = MissAdmission(jobs: 10, bytes: 1000)
        let prewarming = (0..<10).map { _ in admission.admit(nil, bytes: 1, urgency: .prewarm) }
        #expect(prewarming.filter { $0 != nil }.count == 5)
        let visitors = (0..<10).map { _ in admission.admit(nil, bytes: 1, urgency: .visitor) }
        #expect(visitors.filter { $0 != nil }.count == 5)
        withExtendedLifetime((prewarming, visitors)) {}
    }

    @Test func anOriginThatIsSlowLeavesAQuarterOfThePlaces() throws {
        let admission = MissAdmission(jobs: 40, bytes: 1000)
        let slow = try (0..<40).map { _ in try admission.admit(origin(), bytes: 1, urgency: .visitor) }
        #expect(slow.filter { $0 != nil }.count == 30)
        #expect(try admission.admit(origin("https://b.test/"), bytes: 1, urgency: .visitor) != nil)
        // What has been fetched is no burden of the origin's any more.
        slow.forEach { $0?.settle(bytes: 1) }
        #expect(try admission.admit(origin(), bytes: 1, urgency: .visitor) != nil)
        withExtendedLifetime(slow) {}
    }
}
