import TestSupport
import Testing

@Suite("Texts of settings violate no invariant") struct SettingFuzzTests {
    @Test func seedsViolateNoInvariant() {
        for seed in SettingSeeds.all { check(seed) }
    }

    @Test func mutatedTextsViolateNoInvariant() {
        var mutator = ByteMutator(seed: 3, telling: Array("0123456789.,=-+_ \nsmhdKMGTiBé".utf8))
        // Each input compares all settings, which takes milliseconds.
        for (index, seed) in SettingSeeds.all.enumerated() where index % 4 == 0 { check(mutator.mutate(seed)) }
    }

    private func check(_ input: [UInt8]) {
        let violation = input.withUnsafeBytes { SettingInvariants.violation($0) }
        #expect(violation == nil, "\(String(decoding: input, as: UTF8.self).debugDescription)")
    }
}
