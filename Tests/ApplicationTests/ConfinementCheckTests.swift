import Settings
import Testing

@testable import Sandbox
@testable import gifreel

@Suite("The start checks how far workers are confined") struct ConfinementCheckTests {
    private let whole = Confinement(filtersCalls: true, landlockVersion: 1)
    private let weak = Confinement(filtersCalls: true, landlockVersion: 0)

    @Test func allIsNotAWord() throws {
        #expect(try ConfinementCheck.check(whole, isRequired: true) == nil)
        #expect(try ConfinementCheck.check(whole, isRequired: false) == nil)
    }

    @Test func aMissingConfinementIsLogged() throws {
        #expect(try #require(try ConfinementCheck.check(weak, isRequired: false)).contains("does not offer landlock"))
    }

    @Test func aMissingRequiredConfinementStopsTheStart() {
        let error = #expect(throws: SettingsError.self) { try ConfinementCheck.check(weak, isRequired: true) }
        #expect(error?.description.contains("sandbox.require") == true)
    }

    @Test func aZygoteThatDoesNotComeUpStopsTheStart() {
        #expect(throws: SettingsError.self) { try ConfinementCheck.check(nil, isRequired: false) }
    }
}
