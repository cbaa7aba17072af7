import Testing

@testable import Sandbox

@Suite("The allowance of a job grows with its expected cost") struct AllowanceTests {
    private let allowance = WorkerAllowance(cpu: 30, memory: 512 << 20, output: 256 << 20, wall: 45)

    @Test func aCostMultipliesProcessorAndWallClockTime() {
        let scaled = allowance.times(3)
        #expect(scaled.cpu == 90 && scaled.wall == 135)
    }

    @Test func memoryAndOutputStayTheSame() {
        let scaled = allowance.times(7)
        #expect(scaled.memory == 512 << 20 && scaled.output == 256 << 20)
    }

    @Test func aShareMultipliesMemory() {
        let scaled = allowance.times(3, memory: 1.5)
        #expect(scaled.memory == 768 << 20 && scaled.output == 256 << 20 && scaled.cpu == 90)
    }

    @Test func aCostOfOneChangesNothing() {
        #expect(allowance.times(1) == allowance)
    }

    @Test func theLongestSettingsDoNotOverflow() {
        let day = 86_400
        let scaled = WorkerAllowance(cpu: day).times(100)
        #expect(scaled.cpu == 100 * day && scaled.wall == 200 * day)
    }
}
