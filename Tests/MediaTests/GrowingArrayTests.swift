import Testing

@testable import Media

@Suite("Arrays that grow with the frames of a source") struct GrowingArrayTests {
    @Test func theyHaveAllElementsInOrder() throws {
        var numbers: [Int] = []
        for number in 0..<1000 { try numbers.grow(by: number) }
        #expect(numbers == Array(0..<1000))
    }

    @Test func tooMuchMemoryIsAnError() {
        #expect(throws: TranscodeError.outOfMemory) { try HeapBuffer.check(bytes: Int.max / 2) }
        #expect(throws: Never.self) { try HeapBuffer.check(bytes: 0) }
    }
}
