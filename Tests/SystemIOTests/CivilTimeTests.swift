import SystemIO
import Testing

@Suite("Times of logs") struct CivilTimeTests {
    @Test func theyHaveTheFormOfRFC3339() {
        #expect(CivilTime.text(milliseconds: 784_111_777_042) == "1994-11-06T08:49:37.042Z")
        #expect(CivilTime.text(milliseconds: -1) == "1969-12-31T23:59:59.999Z")
    }
}
