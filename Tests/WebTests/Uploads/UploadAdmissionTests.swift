import SystemIO
import Testing

@testable import Web

@Suite("Uploads share memory fairly") struct UploadAdmissionTests {
    private func client(_ text: String) throws -> ClientNetwork { ClientNetwork(try #require(IPAddress(text))) }

    @Test func aSlowClientHoldsOnlyTheBytesItHasSent() throws {
        let admission = UploadAdmission(UploadAdmission.Limits(uploads: 264, bytes: 512 << 20))
        let slow = try client("192.0.2.1")
        let trickling = try (0..<26).map { _ in try #require(admission.admit(slow)) }
        for upload in trickling { try upload.reserve(1) }
        #expect(admission.load == (26, 26))
        // The same network, and another one.
        for other in [slow, try client("192.0.2.2")] {
            let upload = try #require(admission.admit(other))
            try upload.reserve(20 << 20)
        }
        withExtendedLifetime(trickling) {}
    }

    @Test func aClientNetworkGetsAQuarterOfTheUploads() throws {
        let admission = UploadAdmission(UploadAdmission.Limits(uploads: 8, bytes: 1000))
        let first = try client("2001:db8::1")
        let held = [admission.admit(first), admission.admit(try client("2001:db8::2"))]
        #expect(held.allSatisfy { $0 != nil })
        #expect(admission.admit(first) == nil)
        let others = try (0..<6).map { admission.admit(try client("192.0.2.\($0)")) }
        #expect(others.allSatisfy { $0 != nil })
        #expect(admission.admit(try client("198.51.100.1")) == nil)
        #expect(admission.admit(nil) == nil)
        withExtendedLifetime((held, others)) {}
    }

    @Test func aClientNetworkGetsHalfOfTheBytes() throws {
        let admission = UploadAdmission(UploadAdmission.Limits(uploads: 100, bytes: 1000))
        let greedy = try (0..<2).map { _ in try #require(admission.admit(try client("192.0.2.1"))) }
        try greedy[0].reserve(400)
        try greedy[1].reserve(100)
        #expect(throws: Problem.overloaded) { try greedy[1].reserve(1) }
        let other = try #require(admission.admit(try client("192.0.2.2")))
        try other.reserve(500)
        #expect(throws: Problem.overloaded) { try other.reserve(1000) }
        withExtendedLifetime((greedy, other)) {}
    }

    @Test func aReservationEndsWithItsUpload() throws {
        let admission = UploadAdmission(UploadAdmission.Limits(uploads: 4, bytes: 1000))
        let source = try client("192.0.2.1")
        do {
            let upload = try #require(admission.admit(source))
            try upload.reserve(5000)
            #expect(admission.load == (1, 5000))
            #expect(admission.admit(source) == nil)
        }
        #expect(admission.load == (0, 0))
        #expect(admission.admit(source) != nil)
        admission.setLimits(UploadAdmission.Limits(uploads: 0, bytes: 0))
        #expect(admission.admit(source) == nil)
    }
}
